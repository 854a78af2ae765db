"""Recognises the messages of the known failures, versions, and lines that look like a failure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kdoctor.failures.known import KnownFailure
from kdoctor.failures.pattern import weight
from kdoctor_diagnose.triggers import compile_triggers, trigger_of

Role = Literal["message", "clue", "unless", "version", "error", "ignored"]

_NUMBER = r"(?P<version>\d+\.\d+[\w.]*)"
VERSIONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("keras", ("eras==", "eras-", "eras@"), rf"\bkeras(?:==|@|-){_NUMBER}"),
    ("keras", ("eras version", "eras Version"), rf"\b[Kk]eras [Vv]ersion[\"': =]{{1,6}}v?{_NUMBER}"),
    (
        "tensorflow",
        ("flow==", "flow-2", "flow-cpu", "flow_cpu", "flow-gpu", "flow@"),
        rf"\btensorflow(?:[_-]cpu|[_-]gpu)?(?:==|@|-){_NUMBER}",
    ),
    ("tensorflow", ("low version", "low Version"), rf"\b[Tt]ensor[Ff]low [Vv]ersion[\"': =]{{1,6}}v?{_NUMBER}"),
    ("tensorflow", ("TF version", "TF Version"), rf"\bTF [Vv]ersion[\"': =]{{1,6}}v?{_NUMBER}"),
    *((name, (f"{name}==", f"{name}-"), rf"\b{name}(?:==|-){_NUMBER}") for name in ("numpy", "protobuf", "jax")),
    ("numpy", ("run in NumPy",), rf"cannot be run in NumPy {_NUMBER}"),
    ("nccl", ("NCCL version",), rf"NCCL version {_NUMBER}"),
    ("driver", ("Driver Version",), rf"Driver Version: {{0,2}}{_NUMBER}"),
)
"""Packages, the triggers, and the patterns of messages that name their version."""

_BEFORE_NAME = r"^[\s>|`'\"]{0,16}(?:(?:[A-Za-z_][\w.]{0,80}\.)?UnfilteredStackTrace: )?(?:[A-Za-z_][\w.]{0,80}\.)?"
_EXCEPTION_NAME = "(?:Errors?|Exception|Interrupt|ProcessPool|Expired|Iteration|Failure)"
_SEE_ABOVE = r"(?: \(see above for traceback\))?"
_STATUS = r"^ *\(\d\) (?:[A-Z_]{5,30}|[A-Z][a-z ]{5,30}): "
"""One of the errors of TensorFlow that it lists after the number of root errors."""
_ZSH = (
    r"^(?:zsh: |\[\d{1,3}\] {1,6}(?:[+-] {1,3})?\d{2,9} )"
    r"(?:abort|segmentation fault|bus error|trace trap|illegal hardware instruction|killed)"
)
"""How zsh reports the end of a program."""
_CRASHES = r"Segmentation fault|Fatal Python error: |\(core dumped\)|terminate called after throwing"
_STATUSES = (
    r"\b(?:CUDA_ERROR_[A-Z_]{4,40}|CU(?:BLAS|DNN)_STATUS_(?!SUCCESS)[A-Z_]{4,40}|HSA_STATUS_ERROR\w{0,40}"
    r"|(?:hip|cuda)Error(?!Strings?\b)[A-Z]\w{3,40}|hipError_t\(\d|miopenStatus(?!Success)[A-Z]\w{3,40})"
)
"""The codes of drivers and libraries of GPUs, whatever level the line has."""
_REFUSED = (
    r"(?:OP_REQUIRES failed at|op_kernel\.cc:\d{1,6}\](?= [A-Z][a-z]+[a-z ]{0,20}: )) "
    r"(?!.{0,80}(?:OUT_OF_RANGE|Out of range|(?i:cancelled)))"
)
"""What an operation of TensorFlow reports, unless it is the end of the data."""
EXCEPTION = 9
"""The score of the last line of a traceback."""
_LEVELS = "ERROR|FATAL|CRITICAL"
_LEVEL = rf"(?!ERROR: pip's )(?:(?:^|(?<=\d ))(?:{_LEVELS})\b|\b(?:{_LEVELS})(?=[\"\]:|),]|\s[-\s\[]|$))"
"""The level of a line, not a word in a sentence."""
ERRORS: tuple[tuple[int, tuple[str, ...], str], ...] = (
    (
        EXCEPTION,
        ("Error", "Exception", "Interrupt", "ProcessPool", "Expired:", "StopIteration", "Failure:"),
        rf"{_BEFORE_NAME}(?:[A-Z]\w{{0,60}}{_EXCEPTION_NAME}|Exception){_SEE_ABOVE}(?::|$)",
    ),
    (EXCEPTION, ("reported to Coord",), r"Error reported to Coordinator: (?!.*(?:OutOfRange|Cancelled)Error)"),
    (8, ("Exception in ", "xception while", "xception during"), r"^Exception (?:in|while|during) .{1,80}?: \S"),
    (
        6,
        ("xit code", "xit Code", "xit status", "xitcode", "ith code", "ith status", "zero status"),
        r"(?i)\bexit(?:ed)?(?: with)?(?: an?)?(?: non-?zero)? ?(?:code|status)\W{1,8}(?!0\b)\d",
    ),
    (8, ("what():",), r"^ *what\(\): "),
    (8, ("Check failed", "LLVM ERROR", "Non-OK-status"), r"(?:Check failed|LLVM ERROR|Non-OK-status): "),
    (8, ("failed assertion", "ssertion `"), r"failed assertion [`']|: Assertion [`'].{1,300}failed"),
    (
        8,
        ("malloc: ***", "free(): ", "malloc(): ", "munmap_chunk", "double free"),
        r"malloc: \*\*\* error for object|\b(?:free|malloc|realloc|munmap_chunk)\(\): |double free or corruption",
    ),
    (7, ("zsh: ", "bort  ", "bort (core", "gmentation fault", "bus error", "trace trap", "gal hardware"), _ZSH),
    (6, ("error: ",), r":\d+:\d+: (?:fatal )?error: "),
    (
        6,
        ("CUDA_ERROR_", "CUBLAS_STATUS", "CUDNN_STATUS", "HSA_STATUS_E", "hipError", "cudaError", "miopenStatus"),
        _STATUSES,
    ),
    (8, ("Status: ",), r"^Status: [A-Z_]{5,30}: "),
    (7, ("Segmentation fault", "Fatal Python", "core dumped", "terminate called"), _CRASHES),
    (8, (") INVALID_", ") INTERNAL", ") UNIMPL", ") NOT_FOUND", ") UNKNOWN:", ") FAILED_"), _STATUS),
    (8, (") Invalid arg", ") Internal:", ") Unimpl", ") Not found:", ") Unknown:", ") Failed prec"), _STATUS),
    (
        6,
        ("\nF0", "\nF1", " F0", " F1", ":F0", ":F1", "\tF0", "\tF1", "F tensorflow/", "F external/"),
        r"^F\d{4} |(?:^|: )F (?:tensorflow|external)/",
    ),
    (5, ("Traceback",), r"Traceback \(most recent call last\)"),
    (6, ("OP_REQUIRES failed", "op_kernel.cc:"), _REFUSED),
    (6, ("NCCL WARN",), r"NCCL WARN "),
    (4, ("ErrorMessage",), r"^ErrorMessage "),
    (4, ("ERROR", "FATAL", "CRITICAL"), _LEVEL),
    (3, ("E tensorflow/", "E external/", "\nE0", "\nE1"), r"^E\d{4} |(?:^|: )E (?:tensorflow|external)/"),
    (
        8,
        ("error: unrecog", "error: the foll", "error: argument", "error: one of the"),
        r"^\S{1,60}: error: (?:unrecognized arg|the following arguments are req|argument \S|one of the arguments)",
    ),
    (2, ("error: ",), r"^(?:[\w./-]{1,60}: ){0,3}(?:fatal |internal )?error: "),
)
"""How much a line looks like the failure, the triggers, and the pattern."""

_IGNORED = "Exception ignored in"
"""Python writes it before the traceback of an exception that ends nothing, such as one of a finalizer."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A pattern and what it means."""

    role: Role
    text: str
    """The regular expression."""
    weight: int
    failure: KnownFailure | None = None
    name: str = ""
    """The package of a version."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """It compiled. Few of the rules have their trigger in a log, and only those are needed."""
        return re.compile(self.text)


@dataclass(frozen=True)
class Hit:
    """A rule that a line has."""

    rule: Rule
    match: re.Match[str]


class Recogniser:
    """All rules, found by their triggers."""

    def __init__(self, failures: Iterable[KnownFailure]) -> None:
        self._by_trigger: defaultdict[str, list[Rule]] = defaultdict(list)
        for rule, triggers in (*_rules(failures), *_built_in()):
            for trigger in triggers:
                self._by_trigger[trigger].append(rule)

    @cached_property
    def lines(self) -> re.Pattern[bytes]:
        """Finds the lines that may have a rule."""
        return compile_triggers(self._by_trigger)

    def recognise(self, text: str) -> list[Hit]:
        """The rules that a line has."""
        marked = f"\n{text}"  # a trigger may begin with the start of the line
        rules = [rule for trigger, rules in self._by_trigger.items() if trigger in marked for rule in rules]
        return [Hit(rule, match) for rule in dict.fromkeys(rules) if (match := rule.pattern.search(text))]


def _rules(failures: Iterable[KnownFailure]) -> Iterator[tuple[Rule, tuple[str, ...]]]:
    for failure in failures:
        groups: tuple[tuple[Role, list[str]], ...] = (
            ("message", failure.messages),
            ("clue", failure.clues),
            ("unless", failure.unless),
        )
        for role, patterns in groups:
            for text in patterns:
                yield Rule(role, text, weight(text), failure), (trigger_of(text),)


def _built_in() -> Iterator[tuple[Rule, tuple[str, ...]]]:
    for name, triggers, text in VERSIONS:
        yield Rule("version", text, 0, name=name), triggers
    for score, triggers, text in ERRORS:
        yield Rule("error", text, score), triggers
    yield Rule("ignored", _IGNORED, 0), (_IGNORED,)
