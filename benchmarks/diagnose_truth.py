"""How often ``kdoctor diagnose`` is right on a folder of logs: ``make bench-diagnose DIR=folder``.

The folder has a table ``truth.csv`` with the columns ``file``, ``class`` and ``words``. The class is ``known`` (a
failure of TensorFlow, Keras, the driver or the machine), ``own`` (an error of the program or its data) or ``none``
(nothing failed). The answer must have all words of one of the alternatives that ``|`` separates, in any case. False
greens come first.
"""

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from kdoctor.catalog.load import load_catalog
from kdoctor_diagnose.diagnose import diagnose
from kdoctor_diagnose.inputs import logs_of
from kdoctor_diagnose.model import Diagnosis

_NONE = "none"
_NOTHING = ("no failure", "end not shown")
_LEAST = {"certain": 0.98, "likely": 0.85, "possible": 0.5}
"""The share of right answers that each certainty promises."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is known about a log."""

    file: str
    kind: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was said about it."""

    truth: Truth
    certainty: str
    """Of the cause; ``own error``, ``not known``, ``end not shown`` or ``no failure`` without one."""
    text: str

    @property
    def is_right(self) -> bool:
        """Whether it says what the truth asks for."""
        if self.truth.kind == _NONE or self.certainty in _NOTHING:
            return self.truth.kind == _NONE and self.certainty in _NOTHING
        said = self.text.lower()
        return any(all(word in said for word in way.lower().split()) for way in self.truth.words.split("|"))


def main(folder: Path) -> int:
    """Print the measurement; 1 if a failure was called none, or a certainty promises more than it keeps."""
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        truths = [Truth(file=row["file"], kind=row["class"], words=row["words"]) for row in csv.DictReader(file)]
    answers = list(_answers(folder, truths))
    greens = [item for item in answers if item.certainty == "no failure" and item.truth.kind != _NONE]
    alarms = [item for item in answers if item.certainty not in _NOTHING and item.truth.kind == _NONE]
    wrong = [item for item in answers if not item.is_right and item not in greens and item not in alarms]
    for title, items in (("called no failure", greens), ("nothing failed", alarms), ("other answer", wrong)):
        for item in items:
            print(f"{title}: {item.truth.file}: {item.certainty}: {item.text.splitlines()[0][:100]}")
    kinds = _shares((item.truth.kind, item.is_right) for item in answers)
    certainties = _shares((item.certainty, item.is_right) for item in answers)
    for name, (right, number) in {**kinds, **certainties}.items():
        print(f"{name:12} {right:4} of {number:4} right, {100 * right / number:3.0f} %")
    broken = [name for name, least in _LEAST.items() if name in certainties and _share(certainties[name]) < least]
    return 1 if greens or broken else 0


def _answers(folder: Path, truths: list[Truth]) -> Iterator[Answer]:
    catalog = load_catalog()
    for truth in truths:
        logs, notes = logs_of([str(folder / truth.file)], BytesIO())
        found = diagnose(logs, catalog.checks, catalog.scenarios, notes=notes)
        yield Answer(truth=truth, certainty=_certainty(found), text=_text(found))


def _certainty(found: Diagnosis) -> str:
    if found.first is not None:
        return found.first.certainty
    if found.own:
        return "own error"
    return {"no-failure": "no failure", "no-end": "end not shown"}.get(found.conclusion, "not known")


def _text(found: Diagnosis) -> str:
    if found.first is not None:
        steps = (step.do for step in found.first.fix)
        return "\n".join((found.first.symptom, found.first.cause, found.first.first.text, *steps))
    return found.own.text if found.own else found.conclusion


def _shares(items: Iterator[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for name, is_right in items:
        counts[name][is_right] += 1
    return {name: (count[True], count.total()) for name, count in sorted(counts.items())}


def _share(counts: tuple[int, int]) -> float:
    right, number = counts
    return right / number


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
