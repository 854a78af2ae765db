"""The page about measurements on real GPUs."""

import json
from pathlib import Path
from typing import Any

from docs.generator.markdown import table

from kdoctor.catalog.load import Catalog

RECORDS = Path(__file__).parents[1] / "measured-hardware"
_HARDWARE = """\
# Measured hardware

`make test-gpu` compares kdoctor with the other tools of a machine with an NVIDIA GPU: NVML with `nvidia-smi`, sysfs
with `lspci`, the kernel log with `dmesg`. It samples a load, checks the machine with its own checklist, trains, and
plants faults: a newer driver than installed, hidden GPUs, a GPU in use, and exhausted memory. It needs no network:

    make test-gpu PYTHON=python3.12 WHEELS=wheels

`WHEELS` is a folder with wheels of the packages that the interpreter lacks (`tests/gpu/wheels.txt`). The tests write
`build/measured-gpu.json`. Copied to `docs/measured-hardware/`, `make site` shows it here.
"""
_NOT_MEASURED = "Nothing was measured on a real GPU yet. What kdoctor reports about GPUs was tested with recordings."
_RECORD_TYPES = {"schema": str, "rehearsal": bool, "date": str, "machine": dict, "tests": list, "tables": dict}


def measured_hardware_page(_: Catalog, folder: Path = RECORDS) -> str:
    """What the tests on real GPUs saw, one section for each record."""
    records = [_read_record(path) for path in sorted(folder.glob("*.json"))]
    lines = [_HARDWARE.rstrip("\n")]
    for record in records or ():
        lines += ["", f"## {record['machine'].get('GPUs', 'GPU unknown')}, {record['date']}", ""]
        lines += table(("", ""), [(name, value) for name, value in record["machine"].items()])
        outcomes = [test["outcome"] for test in record["tests"]]
        counts = ", ".join(f"{outcomes.count(name)} {name}" for name in ("passed", "failed", "skipped"))
        lines += ["", f"{counts}, in {record.get('seconds', 0):.0f} s with kdoctor {record.get('kdoctor')}.", ""]
        others = [test for test in record["tests"] if test["outcome"] != "passed"]
        if others:
            rows = [(test["test"], test["outcome"], test["reason"]) for test in others]
            lines += [*table(("test", "outcome", "reason"), rows), ""]
        for title, shown in record["tables"].items():
            lines += [f"### {title}", "", *table(shown["columns"], shown["rows"]), ""]
    return "\n".join(lines if records else [*lines, "", _NOT_MEASURED]).rstrip() + "\n"


def _read_record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for key, kind in _RECORD_TYPES.items():
        if not isinstance(record.get(key), kind):
            raise ValueError(f"{path}: {key} is missing or not a {kind.__name__}")  # noqa: TRY004 - a the file's defect
    if record["rehearsal"]:
        raise ValueError(f"{path} is the record of a rehearsal without a GPU")
    return record
