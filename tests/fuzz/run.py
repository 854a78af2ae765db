"""Feeds changed documents to every reader for a time, and prints inputs tried and crashes by reader.

``make fuzz SECONDS=600``. An input that crashes a reader, or keeps it busy for too long, is kept in the corpus, outside
the repository. Later runs start with it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
for source in ("doctor", "checks", "checklists", "tests"):
    sys.path.insert(0, str(ROOT / source))

from helpers.fuzzing.readers import READERS  # noqa: E402 - the path is set above
from helpers.fuzzing.using import CheckCrashedError, Reader  # noqa: E402 - the path is set above
from kdoctor.errors import UsageError  # noqa: E402 - the path is set above

LIMIT_S = 20.0
"""CPU seconds for one input."""
MEMORY = 4 * 1024**3


class TooSlowError(Exception):
    """A reader was busy for too long."""


@dataclass
class Tally:
    """What one reader was given."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    crashes: Counter[str] = field(default_factory=Counter)
    """Where the reader crashed, to the number of inputs."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlowError after the limit of CPU time."""

    def end(*_: object) -> None:
        raise TooSlowError

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def place_of(error: BaseException) -> str:
    """The error, and the innermost line of kdoctor that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/doctor/" in frame.filename or "/checks/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    if isinstance(error, CheckCrashedError):
        return str(error)
    return f"{type(error).__name__} at {Path(last.filename).parent.name}/{Path(last.filename).name}:{last.lineno}"


def feed(reader: Reader, data: bytes, tally: Tally, folder: Path) -> str | None:
    """Give a reader one input; the place of a crash, or None."""
    tally.inputs += 1
    try:
        with limited():
            reader.run(data, folder)
    except UsageError:
        tally.refused += 1
    except (Exception, RecursionError) as error:  # noqa: BLE001 - a crash is what is looked for
        where = place_of(error)
        tally.crashes[where] += 1
        return where
    return None


def keep(corpus: Path, name: str, data: bytes) -> Path:
    """Keep an input that crashed a reader."""
    file = corpus / name.replace("/", "-").replace(" ", "-") / hashlib.sha256(data).hexdigest()[:16]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def fuzz(
    tallies: dict[str, Tally], seconds: float, most: int | None, seed: int, corpus: Path, *, verbose: bool
) -> None:
    """Feed the readers in turn until the time is over, or all have had ``most`` inputs together."""
    random = Random(seed)
    names = list(tallies)
    seeds = {name: list(READERS[name].seeds()) for name in names}
    known: set[str] = set()
    end = time.monotonic() + seconds
    # No reader has most of the inputs only because it is fast.
    share = most and max(3 * most // len(names), 1)
    with tempfile.TemporaryDirectory(prefix="kdoctor-fuzz-") as made:
        folder = Path(made)
        for name in names:
            for file in sorted((corpus / name.replace("/", "-").replace(" ", "-")).glob("*")):
                feed(READERS[name], file.read_bytes(), tallies[name], folder)
        while time.monotonic() < end and (most is None or sum(item.inputs for item in tallies.values()) < most):
            # The reader that has had the least time comes next, so that slow readers do not starve the others.
            open_ = [name for name in names if share is None or tallies[name].inputs < share]
            name = min(open_ or names, key=lambda item: tallies[item].seconds)
            reader, tally = READERS[name], tallies[name]
            start = time.process_time()
            for _ in range(20):
                data = reader.mutate(random.choice(seeds[name]), random)
                where = feed(reader, data, tally, folder)
                if where and where not in known:
                    known.add(where)
                    file = keep(corpus, name, data)
                    if verbose:
                        print(f"{name}: {where}\n  {file}", file=sys.stderr, flush=True)
            tally.seconds += time.process_time() - start


def table(tallies: dict[str, Tally]) -> str:
    """Inputs and crashes by reader."""
    lines = [f"{'reader':<30}{'inputs':>10}{'refused':>10}{'crashes':>9}{'per s':>8}"]
    for name, tally in tallies.items():
        rate = tally.inputs / tally.seconds if tally.seconds else 0
        lines.append(f"{name:<30}{tally.inputs:>10}{tally.refused:>10}{tally.crashes.total():>9}{rate:>8.0f}")
    inputs, crashes = (
        sum(values) for values in zip(*((t.inputs, t.crashes.total()) for t in tallies.values()), strict=True)
    )
    lines.append(f"{'all':<30}{inputs:>10}{sum(t.refused for t in tallies.values()):>10}{crashes:>9}")
    for name, tally in tallies.items():
        lines += [f"  {name}: {where} ({count})" for where, count in tally.crashes.most_common()]
    return "\n".join(lines)


def main() -> int:
    """Run the command line; 1 if a reader crashed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--inputs", type=int, help="stop after that many")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--reader", action="append", choices=list(READERS), help="only this one (repeatable)")
    parser.add_argument("--coverage", action="store_true", help="guided by the code that is reached (needs atheris)")
    parser.add_argument("--corpus", type=Path, default=cache / "kdoctor/fuzz")
    options = parser.parse_args()
    tallies = {name: Tally() for name in options.reader or READERS}
    if options.coverage:
        skipped = import_module("guided").fuzz_guided(tallies, options.seconds, options.seed, options.corpus)
        print(skipped or table(tallies))
        return 1 if any(tally.crashes for tally in tallies.values()) else 0
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    print(f"seed {options.seed}, corpus {options.corpus}")
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # what was tried until then is printed
        fuzz(tallies, options.seconds, options.inputs, options.seed, options.corpus, verbose=True)
    print(table(tallies))
    return 1 if any(tally.crashes for tally in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
