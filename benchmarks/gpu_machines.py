"""Writes machines with 8 and 16 H100 into a folder, and a stand-in for NVML.

Every call of the stand-in takes 0.25 ms, because calls of the real library wait for the driver. They take from a
microsecond (cached names) to tens of milliseconds (counters of the GPU).
"""

import shutil
import sys
from pathlib import Path

from helpers import machines, nvml_library

CALL_US = 250


def main() -> None:
    """Replace the folder that the command line names."""
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
