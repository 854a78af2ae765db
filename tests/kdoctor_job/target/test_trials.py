"""Copies that are trained again: they are not traced again, and end where new ones end."""

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.tensorflow
def test_copy_begins_again_if_it_ends_where_it_did() -> None:
    found = trials("again")
    assert found["kept"]
    assert found["again"] == 0 < found["other"]  # the order changes the rounding
    assert not found["kept although it ends elsewhere"]
