"""Draws jobs from the public API of the installed Keras, and judges each by all invariants: ``make explore``.

A list holds what was thought of before. Here, the symbols are those of ``keras.layers``, ``losses``, ``metrics``,
``optimizers``, ``regularizers``, ``constraints``, ``initializers`` and ``callbacks``, the arguments of an optimizer, of
``compile``, ``fit``, ``evaluate`` and ``predict``, the forms of data and the ways to save: each alone, and then drawn
combinations of them. What a symbol needs is found by trying: the first form of a job that trains on one device.
Then ``kdoctor.preflight`` compares it on two CPU devices. What concerns how the job calls the methods of the model is
followed on one device and on two instead. Each job has its own process, which is forked after the import.
Combinations that break are made smaller as long as they break in the same way.

One line of JSON for each job is added to the file of ``--results``, with the script of the job, and a later run goes
on from there. The summary groups what breaks, and says why a symbol has no verdict. ``EXPLORE_PACKAGE=tf_keras``
explores Keras 2.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "KDOCTOR_NO_HISTORY": "1", "CUDA_VISIBLE_DEVICES": "-1"}

from benchmarks.explore.drawing import KINDS, USES, Sources, drawn, keras, kind_of, symbols
from benchmarks.explore.judging import Outcome
from benchmarks.explore.processes import run, smaller


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Coverage by kind, what breaks grouped by its checks, and what has no verdict."""
    alone = [one for one in outcomes if len(one.parts) == 1]
    for kind in (*KINDS, *USES):
        members = [one for one in alone if kind_of(one.parts[0]) == kind]
        judged = sum(one.verdict != "none" for one in members)
        yield f"{kind:<13} {judged:>4} of {len(members)} with a verdict"
    combined = [one for one in outcomes if len(one.parts) > 1]
    judged = sum(one.verdict != "none" for one in combined)
    yield f"{'combinations':<13} {judged:>4} of {len(combined)} with a verdict"
    for verdict, title in (("breaks", "Breaks"), ("none", "No verdict")):
        found = sorted(
            (one.reason, " + ".join(one.smallest or one.parts)) for one in outcomes if one.verdict == verdict
        )
        for reason, group in groupby(dict.fromkeys(found), lambda one: one[0]):
            yield f"{title}: {reason}"
            yield from (f"    {name}" for _, name in group)


def main() -> None:
    """Explore, and print the summary of everything in the file of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("explored.jsonl"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--combinations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600, help="no job begins later")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="symbols that contain this text")
    options = parser.parse_args()
    lines = options.results.read_text(encoding="utf-8").splitlines() if options.results.exists() else []
    known = [Outcome(**{**entry, "parts": tuple(entry["parts"])}) for entry in map(json.loads, lines)]
    outcomes = [one for one in known if one.keras == keras.__version__]
    ignored: frozenset[str] = frozenset()
    """What fails in a job of none of the symbols."""
    done, end = {one.parts for one in outcomes}, time.monotonic() + options.seconds

    def note(outcome: Outcome) -> None:
        if outcome.verdict == "breaks" and len(outcome.parts) > 1:
            least = smaller(outcome, ignored)
            outcome = replace(outcome, script=least.script, smallest=least.parts)
        outcomes.append(outcome)
        with options.results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(outcome)) + "\n")
        print(f"{outcome.verdict:<7} {' + '.join(outcome.parts) or 'plain'}  {outcome.reason}", flush=True)

    def jobs() -> Iterator[Sources]:
        wanted = [(part,) for part in symbols() if options.only in part]
        for parts in (*wanted, *drawn(options.seed, options.combinations)):
            if parts not in done and time.monotonic() < end:
                yield parts

    if () not in done:
        run(iter([()]), note, ignored, 1)
    plain = next(one for one in outcomes if not one.parts)
    ignored = frozenset(plain.reason.split(", ") if plain.verdict == "breaks" else ())
    run(jobs(), note, ignored, options.processes)
    print("\n".join(summary(outcomes)))


if __name__ == "__main__":
    main()
