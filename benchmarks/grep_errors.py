"""Search a log for errors, line by line with one compiled expression: the yardstick for ``kdoctor diagnose``."""

import re
import sys


def grep(path: str) -> int:
    """The number of lines that look like an error."""
    pattern = re.compile("error|failed", re.IGNORECASE)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the yardstick imports only what it measures
        return sum(1 for line in file if pattern.search(line))


grep(sys.argv[1])
