"""The GPU that a separate process sees."""

import os

import pytest

from helpers.cases import cases
from kdoctor_target.training.compute import show_only


@cases((None, 2, "2"), ("", 0, "0"), ("5,7", 1, "7"), ("GPU-aa, GPU-bb", 1, "GPU-bb"))
def test_one_gpu_of_the_jobs_is_shown(
    monkeypatch: pytest.MonkeyPatch, before: str | None, index: int, after: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before or "")  # also where it is not set, so that it is unset afterwards
    if before is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    show_only(index)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == after
