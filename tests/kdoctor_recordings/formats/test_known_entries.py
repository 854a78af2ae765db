"""Entries of ``nvidia-smi -q`` that are not read: which are known to report no fault."""

from pathlib import Path

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import imported_gpus, query


@cases(
    ("    Frobnication", False),
    ("    Frobnication\n        Clock : N/A", True),
    ("    Utilization", True),
    ("Frobnication", False),
    ("Mon Jan  5 10:00:00 2026", True),
    ("    Frobnication : N/A", True),
    ("    Frobnication : None", True),
    ("    Frobnication : 0", False),
    ("    Voltage\n        Graphics : 700 mV", True),
    ("    Voltage\n        Graphics : Unknown Error", False),
    ("    Voltage\n        Regulator Fault : 0", True),
    ("    Voltage\n        Regulator Fault : No", True),
    ("    Voltage\n        Regulator Fault : 1", False),
    ("    Retired Pages\n        Page List : failed", False),
    ("    Serial Number : 0", True),
    ("    Serial Number : ERR!", False),
)
def test_line_that_may_report_a_fault_is_kept(tmp_path: Path, line: str, *, is_known: bool) -> None:
    text = query("3B", changes={"    Compute Mode": f"{line}\n    Compute Mode"})
    assert (imported_gpus(tmp_path, text).not_understood == ()) is is_known


def test_entry_above_the_gpus_that_is_not_known_is_kept(tmp_path: Path) -> None:
    text = query("3B", versions="Driver Version : 535.161.08\nFrobnication : failed")
    assert [line.partition(": ")[2] for line in imported_gpus(tmp_path, text).not_understood] == [
        "frobnication: failed"
    ]
