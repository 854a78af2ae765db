"""What the families of checks share: versions, the kernel log, and GPUs that do not respond."""

import pytest

from helpers.facts import bus_id, logged
from kdoctor_checks._kernel_log import codes
from kdoctor_checks._versions import first_short


@pytest.mark.parametrize(("length", "first"), [(60, True), (61, False)])
def test_first_text_of_at_most_60_characters_is_taken(length: int, *, first: bool) -> None:
    assert first_short("x" * length, "short") == ("x" * length if first else "short")


def test_codes_of_events_are_listed_with_other_failures() -> None:
    lines = (f"NVRM: Xid (PCI:{bus_id(0)[:-2]}): 79, pid=1", f"NVRM: GPU {bus_id(0)}: GPU has fallen off the bus.")
    assert codes(logged(*lines).events) == "Xid 79, GPU has fallen off the bus"
    assert codes(logged(lines[0]).events).startswith("Xid 79 (")
