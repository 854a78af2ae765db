"""Writes what is generated from the code: the screens of the README, or with ``--man FILE`` the manual page."""

import argparse
from pathlib import Path

from docs.generator.commands import man_page
from docs.generator.handwritten import with_screens

README = Path(__file__).parents[2] / "README.md"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m docs.generator", description=__doc__)
    parser.add_argument("--man", type=Path, metavar="FILE", help="write the manual page instead")
    options = parser.parse_args()
    if options.man:
        options.man.parent.mkdir(parents=True, exist_ok=True)
        options.man.write_text(man_page(), encoding="utf-8")
    else:
        README.write_text(with_screens(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
