"""Lints and fixes generated files, and fails if one crashes: ``python -m benchmarks.lint_generated 10000``.

A file is made of lines of the labelled set: cases are mixed, and lines left out, doubled, moved and put into blocks.
Most files still parse, and none makes sense.
"""

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lint_labelled import cases

from kdoctor_lint.engine import lint_script
from kdoctor_lint.fixes.apply import fix_file
from kdoctor_lint.registry import RULES
from kdoctor_lint.script import parse_script

_BLOCKS = (
    "def step(x, *args, model=None):",
    "if x:",
    "for x in data:",
    "class A(keras.Model):",
    "with strategy.scope():",
)
_FIXED = 10
"""Every tenth file is also fixed, twice."""


def generated(count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files."""
    pool = [case.code.split("\n") for case in cases()]
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    for number in range(count):
        lines = [line for code in chance.sample(pool, chance.randint(1, 3)) for line in code]
        for _ in range(chance.randint(0, 6)):
            position = chance.randrange(len(lines))
            _change(lines, position, chance)
        code = "\n".join(lines)
        if number % 8:
            yield "train.py", code.encode()
        else:
            cell = {"cell_type": "code", "source": code.splitlines(keepends=True)}
            yield "train.ipynb", json.dumps({"cells": [cell, cell]}).encode()


def _change(lines: list[str], position: int, chance: random.Random) -> None:
    other, end = chance.randrange(len(lines)), chance.randint(position, len(lines))
    match chance.choice(("remove", "double", "swap", "block", "assign")):
        case "remove" if len(lines) > 1:
            del lines[position]
        case "double":
            lines.insert(position, lines[other])
        case "swap":
            lines[position], lines[other] = lines[other], lines[position]
        case "block":
            lines[position:end] = [chance.choice(_BLOCKS), "    pass", *(f"    {line}" for line in lines[position:end])]
        case _:
            lines[position] = lines[position].replace("=", ":=", 1)


def run(count: int, seed: int = 0) -> tuple[int, int]:
    """Lint and fix the files. The numbers of files that parse, and of findings."""
    parsed = found = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, data) in enumerate(generated(count, seed)):
            script = parse_script(name, data)
            findings, _ = lint_script(script, RULES)
            parsed += not script.problems
            found += len(findings)
            if number % _FIXED == 0:
                _fix(Path(folder, name), data)
    return parsed, found


def _fix(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    once = fix_file(str(path), RULES, unsafe=True)
    if once is None:
        return
    path.write_bytes(once.after)
    twice = fix_file(str(path), RULES, unsafe=True)
    if parse_script(path.name, once.after).problems or twice is not None:
        raise AssertionError(once.after.decode())


if __name__ == "__main__":
    files = int(sys.argv[1])
    parsed_files, all_findings = run(files)
    print(f"{files} generated files, {parsed_files} parse, {all_findings} findings, no crash")
