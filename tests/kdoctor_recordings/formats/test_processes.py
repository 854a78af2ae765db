"""Processes that nvidia-smi lists, by their types."""

import pytest

from helpers.cases import cases
from kdoctor_recordings.formats.part import CUT
from kdoctor_recordings.formats.values import NotKnownError, is_compute, is_graphics, read_processes


@cases(
    ("C", True, False),
    (" c ", True, False),
    ("M+C", True, False),
    ("G", False, True),
    ("C+G", False, True),
    ("M", False, False),
    ("", True, False),
)
def test_type_of_a_process(kind: str, *, compute: bool, graphics: bool) -> None:
    assert (is_compute(kind), is_graphics(kind)) == (compute, graphics)
    listed = [{"process id": "7", "type": kind, "used gpu memory": "1 MiB"}, {"process id": "8", "type": "C+G"}]
    assert [one.pid for one in read_processes("", listed, more=False)] == [7] * compute
    assert [one.pid for one in read_processes("", listed, more=False, graphics=True)] == [7] * graphics + [8]


@cases(("", False, "empty"), ("", True, CUT), ("N/A", False, "N/A"), ("N/A", True, "N/A"))
def test_list_without_processes_is_unknown_unless_it_is_empty(heading: str, *, more: bool, reason: str) -> None:
    with pytest.raises(NotKnownError) as error:
        read_processes(heading, [], more=more)
    assert str(error.value) == reason
    assert read_processes(" None ", [], more=more) == ()


def test_list_that_is_cut_off_shows_no_free_gpu() -> None:
    listed = [{"process id": "7", "type": "G", "used gpu memory": "1 MiB"}]
    with pytest.raises(NotKnownError, match="cut off"):
        read_processes("", listed, more=True)
    assert read_processes("", listed, more=False) == ()
    assert [one.pid for one in read_processes("", listed, more=True, graphics=True)] == [7]
