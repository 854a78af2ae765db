"""Writes the machines of the collection's benchmark below a folder: eight and sixteen H100, and the stand-in for NVML.

Every call of the stand-in takes 0.25 ms, because the calls of the real library wait for the driver. What a call costs
there ranges from a microsecond (names, which are cached) to tens of milliseconds (counters that the GPU keeps).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from helpers import machines, nvml_library

REPOSITORY = Path(__file__).resolve().parents[1]
CALL_US = 250


def main() -> None:
    """Write them into the folder that the command line names, anew."""
    # The source roots stand before tests, whose folders bear the same names.
    sys.path[:0] = [str(REPOSITORY / name) for name in ("doctor", "checks", "checklists", "tests")]

    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "library").mkdir(parents=True)
    nvml_library.build(folder / "library")
    for count in (8, 16):
        machine = machines.h100_nvswitch(count)
        machine.tree.write(folder / str(count) / "root")
        machine.nvml.slow(CALL_US).write(folder / str(count) / "machine")


if __name__ == "__main__":
    main()
