"""Feeds documents to the readers, guided by the code that they reach: ``make fuzz FUZZ_OPTIONS=--coverage``.

It needs atheris, which has wheels for some Pythons only. Each reader runs in its own process, because libFuzzer ends
the process, and ends at the first crash.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

try:
    atheris: Any = import_module("atheris")
except ImportError:
    atheris = None

_PACKAGES = ["kdoctor", "kdoctor_lint", "kdoctor_target"]
with atheris.instrument_imports(include=_PACKAGES) if atheris and __name__ == "__main__" else contextlib.nullcontext():
    run: Any = import_module("run")

_EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")
_PLACE = "kdoctor crashed: "
_LONGEST = 65_536
"""Bytes of an input."""


def fuzz_guided(tallies: dict[str, Any], seconds: float, seed: int, corpus: Path) -> str | None:
    """Run each reader for its share of the time; why nothing was run, or None."""
    if atheris is None:
        return "skipped: atheris is not installed here (python -m pip install atheris)"
    for name, tally in tallies.items():
        with tempfile.TemporaryDirectory(prefix="kdoctor-fuzz-") as folder:
            _write_seeds(name, Path(folder))
            argv = [sys.executable, __file__, name, folder, f"{seconds / len(tallies):.0f}", str(seed)]
            ended = subprocess.run(argv, check=False, capture_output=True, text=True, errors="replace", cwd=folder)
            found = _EXECUTED.search(ended.stderr)
            tally.inputs, tally.seconds = int(found[1]) if found else 0, seconds / len(tallies)
            if ended.returncode:
                where = re.search(f"{_PLACE}(.*)", ended.stdout + ended.stderr)
                tally.crashes[where[1] if where else f"exit status {ended.returncode}: {ended.stderr[-200:]!r}"] += 1
                for file in Path(folder).glob("crash-*"):
                    print(f"{name}: {run.keep(corpus, name, file.read_bytes())}", file=sys.stderr, flush=True)
    return None


def _write_seeds(name: str, folder: Path) -> None:
    (folder / "corpus").mkdir()
    for number, data in enumerate(run.READERS[name].seeds()):
        (folder / "corpus" / str(number)).write_bytes(data[:_LONGEST])


def _be_child(name: str, folder: Path, seconds: Sequence[str]) -> None:
    """Fuzz one reader. This process is ended by libFuzzer."""
    reader = run.READERS[name]
    work = folder / "work"
    work.mkdir()

    def read(data: bytes) -> None:
        try:
            reader.run(data, work)
        except run.UsageError:
            pass
        except Exception as error:
            print(f"{_PLACE}{run.place_of(error)}", flush=True)
            raise

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        try:
            changed = reader.mutate(data, random) if random.random() < 0.5 else atheris.Mutate(data, most)
        except ValueError:  # no longer a document of its kind
            changed = atheris.Mutate(data, most)
        return bytes(changed[:most])

    options = [
        f"-max_total_time={seconds[0]}", f"-seed={seconds[1]}", f"-timeout={run.LIMIT_S:.0f}", f"-max_len={_LONGEST}",
        f"-rss_limit_mb={run.MEMORY >> 20}", f"-artifact_prefix={folder}{os.sep}", "-print_final_stats=1",
        "-verbosity=0",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(folder / "corpus")], read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    _be_child(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
