"""What the families of checks share: versions, the kernel log, and GPUs that do not respond."""

import pytest

from helpers.facts import bus_id, logged
from kdoctor.model import NotApplicable, Unjudged
from kdoctor_checks._catalog import xids
from kdoctor_checks._gpus import RESPONDING, only_lost
from kdoctor_checks._kernel_log import codes
from kdoctor_checks._versions import first_short


@pytest.mark.parametrize(("length", "first"), [(60, True), (61, False)])
def test_first_text_of_at_most_60_characters_is_taken(length: int, *, first: bool) -> None:
    assert first_short("x" * length, "short") == ("x" * length if first else "short")


def test_codes_of_events_are_listed_with_other_failures() -> None:
    lines = (f"NVRM: Xid (PCI:{bus_id(0)[:-2]}): 79, pid=1", f"NVRM: GPU {bus_id(0)}: GPU has fallen off the bus.")
    assert codes(logged(*lines).events) == "Xid 79, GPU has fallen off the bus"
    assert codes(logged(lines[0]).events).startswith("Xid 79 (")
    assert xids()[79].code == 79


def test_only_gpus_that_do_not_respond_are_lost() -> None:
    lost = Unjudged(subject="GPU 0", reason="does not respond", explained_by=(RESPONDING,))
    unread = Unjudged(subject="GPU 1", reason="not read")
    assert only_lost([lost])
    assert only_lost([])
    assert not only_lost([lost, unread])
    assert not only_lost([NotApplicable(reason="no")])
