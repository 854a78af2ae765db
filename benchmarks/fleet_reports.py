"""Writes the reports of 10,000 nodes with a few planted differences, merges them, or only parses them.

``write FOLDER [NODES]`` writes the reports. ``merge FOLDER`` judges them and prints the report of the fleet.
``parse FOLDER`` reads and parses their JSON.
"""

import json
import sys
from pathlib import Path

NODES = 10_000


def main() -> None:
    """Do what the arguments say."""
    action, folder = sys.argv[1], Path(sys.argv[2])
    if action == "write":
        _write(folder, int(sys.argv[3]) if len(sys.argv) > 3 else NODES)  # noqa: PLR2004 - an optional argument
    elif action == "merge":
        _merge(folder)
    else:
        for file in sorted(folder.iterdir()):
            json.loads(file.read_bytes())


def _write(folder: Path, nodes: int) -> None:
    from helpers.kdoctor_fleet.fleets import fact, healthy, slower  # noqa: PLC0415 - the tests' helper, for this action only

    if folder.exists():
        return
    planted = {
        100: fact("libraries", "cudnn", "9.1.0"),
        200: fact("driver", "version", "535.161.08"),
        300: fact("environment", "NCCL_ALGO", "Ring"),
        400: slower(4.0),
    }
    folder.mkdir(parents=True)
    text = json.dumps(healthy("NODE", 123456789, nodes))
    for index in range(nodes):
        name = f"node{index:05}"
        mine = text.replace('"NODE"', f'"{name}"').replace("123456789", str(index))
        if index in planted:
            document = json.loads(mine)
            planted[index](document)
            mine = json.dumps(document)
        (folder / f"{name}.json").write_text(mine)


def _merge(folder: Path) -> None:
    from kdoctor.cli import app  # noqa: PLC0415 - its import is not part of parsing

    sys.argv[1:] = ["fleet", "merge", str(folder)]
    try:
        app()
    except SystemExit as ended:
        if ended.code not in (0, 1):
            raise
    raise SystemExit(0)


if __name__ == "__main__":
    main()
