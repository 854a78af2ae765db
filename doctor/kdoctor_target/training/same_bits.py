"""Fixed programs with fixed inputs, whose outputs are compared bit by bit between equal devices and over time.

A device that computes wrong numbers without an error is found only by comparing. The programs are deterministic: some
always, because they add in a fixed order, and the others with the framework's deterministic operations.

Each program's first output stays on its device, and each later one is compared there. What differs is read and
described on the host. The first and the last outputs of equal devices are read and compared on the host, too, because a
faulty device cannot be trusted to compare.

Sources: https://docs.nvidia.com/cuda/cublas/#results-reproducibility (the same bits on every run on GPUs of the same
architecture and number of multiprocessors, with one stream),
https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism (what is not deterministic).
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kdoctor_target.runner.case import Case

AGAIN = 3
"""How many times a program whose output differs is run again at once."""
CPU_S = 2.0
"""Seconds at most on CPU devices, which are parts of one processor."""
_PROGRESS_S = 10.0


class Programs(NamedTuple):
    """The programs, as a framework runs them."""

    names: Sequence[str]
    run: Callable[[str, int], Any]
    """Queues a program on the device at that place; returns its output."""
    differs: Callable[[Any, Any], Any]
    """Queues the comparison of two outputs of one device; ``bool`` of the result waits for it."""


class Sizes(NamedTuple):
    """The sizes of the programs' inputs."""

    rows: int
    """Of the square matrices."""
    products: int
    """In a row in float32, and a multiple of that in smaller types: each takes the result of the one before."""
    images: Tuple[int, int, int, int]
    tokens: Tuple[int, int, int]
    """Heads, length and size of a head."""
    units: int
    """Of the model that is trained."""


SIZES = {
    "gpu": Sizes(4096, 2, (32, 56, 56, 64), (32, 1024, 64), 1024),
    "canary": Sizes(2048, 1, (8, 28, 28, 32), (16, 512, 64), 0),
    "cpu": Sizes(96, 1, (2, 8, 8, 4), (2, 16, 8), 8),
}
PRODUCTS = {"float32": 1, "float16": 8, "bfloat16": 8, "float8": 8}
"""Types of matrices to the relative number of products: tensor cores are faster."""
STEPS = 4
"""Steps of the training."""


def inputs(sizes: Sizes) -> Dict[str, Any]:
    """The inputs in float32, the same on every machine. Products of the matrices keep their magnitude."""
    numbers = np.random.RandomState(38)

    def normal(*shape: int) -> Any:
        return numbers.standard_normal(shape).astype("float32")

    rows, channels = sizes.rows, sizes.images[-1]
    return {
        "matrix": normal(rows, rows) / np.float32(np.sqrt(rows)),
        "images": normal(*sizes.images),
        "filters": normal(3, 3, channels, channels) / np.float32(3 * np.sqrt(channels)),
        "query": normal(*sizes.tokens),
        "key": normal(*sizes.tokens),
        "value": normal(*sizes.tokens),
    }


def read(output: Any) -> Any:
    """An output as a flat NumPy array of unsigned integers, one for each element."""
    array = np.ascontiguousarray(output).reshape(-1)
    return array.view(f"u{array.dtype.itemsize}")


class Comparison:
    """Compares every program's outputs on all devices."""

    def __init__(self, programs: Programs, models: Sequence[str]) -> None:
        """Take the programs and the model of each device: devices of one model must agree."""
        self._programs = programs
        self._models = list(models)
        self._first: Dict[Tuple[str, int], Any] = {}
        self._found: Dict[Tuple[str, int, Optional[int]], Dict[str, Any]] = {}
        self.rounds = 0

    @property
    def programs(self) -> List[str]:
        """The names of the programs."""
        return list(self._programs.names)

    @property
    def differences(self) -> List[Dict[str, Any]]:
        """What differs, by the names of the fields of ``BitDifference``.

        Of two devices that differ, one that does not change is right if the other one changes.
        """
        changes = {(name, place) for name, place, other in self._found if other is None}
        return [
            found
            for (name, place, other), found in self._found.items()
            if found["decided"] or (name, place) in changes or (name, other) not in changes
        ]

    def begin(self) -> None:
        """The first round: keep the outputs, and compare equal devices."""
        for name in self._programs.names:
            for place in range(len(self._models)):
                output = self._first[name, place] = self._programs.run(name, place)
                bool(self._programs.differs(output, output))  # compiles, before a training that must not wait
        self.rounds = 1
        self._compare_devices(self._first)

    def again(self, *, devices: bool = False) -> None:
        """One more round, compared with the first one, and if asked between the devices on the host."""
        self.rounds += 1
        outputs: Dict[Tuple[str, int], Any] = {}
        flags: Dict[Tuple[str, int], Any] = {}
        for name in self._programs.names:
            for place in range(len(self._models)):
                output = self._programs.run(name, place)
                outputs[name, place] = output
                flags[name, place] = self._programs.differs(self._first[name, place], output)
        for (name, place), differs in flags.items():
            if bool(differs):
                self._note_change(name, place, outputs[name, place])
        if devices:
            self._compare_devices(outputs)

    def _note_change(self, name: str, place: int, output: Any) -> None:
        """A device computed something else than before: run the program again to see whether it repeats."""
        first = read(self._first[name, place])
        later = [read(self._programs.run(name, place)) for _ in range(AGAIN)]
        repeats = all(not np.array_equal(first, one) for one in later)
        self._note(name, place, None, first, read(output), repeats=repeats)

    def _compare_devices(self, outputs: Dict[Tuple[str, int], Any]) -> None:
        """Compare the devices of each model: most of three or more are right; of fewer, none is known to be."""
        for name in self._programs.names:
            for model in dict.fromkeys(self._models):
                places = [place for place, other in enumerate(self._models) if other == model]
                if len(places) < 2:  # noqa: PLR2004 - nothing to compare with
                    continue
                found = {place: read(outputs[name, place]) for place in places}
                bits = {place: output.tobytes() for place, output in found.items()}
                most, agreeing = Counter(bits.values()).most_common(1)[0]
                decided = 2 * agreeing > len(places)
                for place, own in bits.items():
                    others = (one for one in places if bits[one] != own and (bits[one] == most or not decided))
                    other = next(others, None)
                    if other is not None:
                        self._note(name, place, other, found[other], found[place], decided=decided)

    def _note(  # noqa: PLR0913 - the fields of a difference
        self,
        name: str,
        place: int,
        other: Optional[int],
        expected: Any,
        found: Any,
        *,
        repeats: Optional[bool] = None,
        decided: bool = True,
    ) -> None:
        key = (name, place, other)
        if key in self._found:
            self._found[key]["rounds"] += 1
            self._found[key]["repeats"] = self._found[key]["repeats"] or repeats
            return
        wrong = np.flatnonzero(expected != found)
        self._found[key] = {
            "program": name,
            "device": place,
            "other": other,
            "elements": int(expected.size),
            "differing": int(wrong.size),
            "first": int(wrong[0]) if wrong.size else None,
            "rounds": 1,
            "found_in": self.rounds,
            "repeats": repeats,
            "decided": decided,
        }


def compare(case: Case, programs: Programs, models: Sequence[str]) -> None:
    """Run the programs on all devices until the time is over, and note what differs.

    Measures: ``rounds``, ``hot_s``, ``equal <place>``, the number of other devices of the same model.
    """
    wanted = float(case.settings.get("hot_s") or 0.0)
    hot_s = wanted if case.devices_kind == "gpu" else min(wanted, CPU_S)
    comparison = Comparison(programs, models)
    case.phase("first round")
    comparison.begin()
    began = time.monotonic()
    shown = began - _PROGRESS_S
    while time.monotonic() < began + hot_s:
        if time.monotonic() >= shown + _PROGRESS_S:
            shown = time.monotonic()
            case.phase(f"round {comparison.rounds + 1}, {began + hot_s - shown:.0f} s left")
            _note(case, comparison, models, shown - began)
        comparison.again()
    case.phase("last round")
    comparison.again(devices=True)
    _note(case, comparison, models, time.monotonic() - began)


def _note(case: Case, comparison: Comparison, models: Sequence[str], seconds: float) -> None:
    case.note(bit_differences=comparison.differences, programs=comparison.programs)
    equal = {f"equal {place}": models.count(model) - 1 for place, model in enumerate(models)}
    case.measure({"rounds": comparison.rounds, "hot_s": seconds, **equal})
