"""How often ``kdoctor diagnose`` is right on a folder of logs: ``make bench-diagnose DIR=folder``.

The folder has a table ``truth.csv`` with the columns ``file``, ``class`` and ``words``. The class is ``known`` (a
failure of TensorFlow, Keras, the driver or the machine), ``own`` (an error of the program or its data) or ``none``
(nothing failed). The answer must have all words of one alternative (``|``). It prints false greens first.
"""

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from kdoctor.catalog.load import load_catalog
from kdoctor_diagnose.diagnose import diagnose
from kdoctor_diagnose.inputs import logs_of

_NONE = "none"
_NOTHING = ("no failure", "end not shown")
_LEAST = {"certain": 0.98, "likely": 0.85, "possible": 0.5}
"""The share of right answers that each certainty promises."""


@dataclass(frozen=True)
class Answer:
    """What was said about a log."""

    truth: dict[str, str]
    """Its row of the table."""
    certainty: str
    """Of the cause; ``own error``, ``not known``, ``end not shown`` or ``no failure`` without one."""
    text: str

    @property
    def kind(self) -> str:
        """The class of the truth."""
        return self.truth["class"]

    @property
    def is_right(self) -> bool:
        """Whether it says what the truth asks for."""
        if self.kind == _NONE or self.certainty in _NOTHING:
            return self.kind == _NONE and self.certainty in _NOTHING
        said = self.text.lower()
        return any(all(word in said for word in way.lower().split()) for way in self.truth["words"].split("|"))


def main(folder: Path) -> int:
    """Print the measurement; 1 if a failure was called none, or a certainty promises more than it keeps."""
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        answers = list(_answers(folder, csv.DictReader(file)))
    greens = [item for item in answers if item.certainty == "no failure" and item.kind != _NONE]
    alarms = [item for item in answers if item.certainty not in _NOTHING and item.kind == _NONE]
    wrong = [item for item in answers if not item.is_right and item not in greens and item not in alarms]
    for title, items in (("called no failure", greens), ("nothing failed", alarms), ("other answer", wrong)):
        for item in items:
            print(f"{title}: {item.truth['file']}: {item.certainty}: {item.text.splitlines()[0][:100]}")
    shares = _shares((name, item.is_right) for item in answers for name in (item.kind, item.certainty))
    for name, (right, number) in shares.items():
        print(f"{name:12} {right:4} of {number:4} right, {100 * right / number:3.0f} %")
    broken = [name for name, least in _LEAST.items() if name in shares and shares[name][0] < least * shares[name][1]]
    return 1 if greens or broken else 0


def _answers(folder: Path, truths: Iterable[dict[str, str]]) -> Iterator[Answer]:
    catalog = load_catalog()
    for truth in truths:
        logs, notes = logs_of([str(folder / truth["file"])], BytesIO())
        found = diagnose(logs, catalog.checks, catalog.scenarios, notes=notes)
        first, own = found.first, found.own.text if found.own else found.conclusion
        said = {"no-failure": "no failure", "no-end": "end not shown"}.get(found.conclusion, "not known")
        certainty = first.certainty if first else "own error" if found.own else said
        steps = [step.do for step in first.fix] if first else []
        text = "\n".join((first.symptom, first.cause, first.first.text, *steps)) if first else own
        yield Answer(truth, certainty, text)


def _shares(items: Iterable[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for name, is_right in items:
        counts[name][is_right] += 1
    return {name: (count[True], count.total()) for name, count in sorted(counts.items())}


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
