"""Search a log for ``NVRM`` five times, line by line with ``re``: the yardstick for the import of a kernel log."""

import re
import sys

TIMES = 5


def grep(path: str) -> int:
    """The number of lines of NVIDIA's driver."""
    pattern = re.compile("NVRM")
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the yardstick imports only what it measures
        return sum(1 for line in file if pattern.search(line))


for _ in range(TIMES):
    grep(sys.argv[1])
