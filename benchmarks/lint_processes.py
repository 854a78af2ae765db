"""Lint a folder in a number of processes: ``lint_processes.py FOLDER PROCESSES``.

Fails if memory grows with the number of files: by more than half after the first inner folder.
"""

import resource
import sys
from pathlib import Path

from kdoctor_lint.engine import lint

_GROWTH = 1.5


def peak() -> int:
    """The most memory that this process, or one that it started, has used, in KiB."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    """Command line."""
    folder, processes = Path(sys.argv[1]), int(sys.argv[2])
    lint([str(min(folder.iterdir()))], processes=processes)
    first = peak()
    report = lint([str(folder)], processes=processes)
    print(f"{len(report.files)} files, {len(report.findings)} findings, {peak() // 1024} MiB, {first // 1024} before")
    if peak() > first * _GROWTH:
        raise SystemExit("memory grows with the number of files")


if __name__ == "__main__":
    main()
