"""Prints the modules whose code runs when every reader reads its unchanged documents."""

import sys
from pathlib import Path

from helpers.fuzzing.readers import READERS
from helpers.fuzzing.using import REPOSITORY

_DOCUMENTS = 3
"""Of each reader, for time."""


def reached(folder: Path) -> set[str]:
    """Paths from the repository's root."""
    names: set[str] = set()
    sys.setprofile(lambda frame, *_: names.add(frame.f_code.co_filename))
    try:
        for reader in READERS.values():
            for seed in reader.seeds()[:_DOCUMENTS]:
                reader.run(seed, folder)
    finally:
        sys.setprofile(None)
    return {Path(name).relative_to(REPOSITORY).as_posix() for name in names if name.startswith(str(REPOSITORY))}


if __name__ == "__main__":
    sys.stdout.write("\n".join(sorted(reached(Path(sys.argv[1])))))
