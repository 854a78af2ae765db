"""Recognises the messages of the known failures, versions, and lines that look like a failure."""

import re
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kdoctor.failures.known import KnownFailure
from kdoctor.failures.pattern import weight
from kdoctor_diagnose.triggers import compile_triggers, trigger_of

Role = Literal["message", "clue", "unless", "version", "error"]
_ROLES: tuple[Role, ...] = ("message", "clue", "unless")

_NUMBER = r"(?P<version>\d+\.\d+[\w.]*)"
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow_cpu", "tensorflow-gpu")
VERSIONS: tuple[tuple[str, str], ...] = (
    *((name, rf"\b{name}{mark}{_NUMBER}") for name in ("keras", "numpy", "protobuf", "jax") for mark in ("==", "-")),
    *(("tensorflow", rf"\b{name}{mark}{_NUMBER}") for name in _TENSORFLOW for mark in ("==", "-")),
    *((name, rf"\b{name}@{_NUMBER}") for name in ("keras", "tensorflow")),
    *(
        (name, rf"{said} {word}[\"': =]{{1,6}}v?{_NUMBER}")
        for name, said in (("keras", r"\b[Kk]eras"), ("tensorflow", r"\b[Tt]ensor[Ff]low"), ("tensorflow", r"\bTF"))
        for word in ("version", "Version")
    ),
    ("numpy", rf"cannot be run in NumPy {_NUMBER}"),
    ("nccl", rf"NCCL version {_NUMBER}"),
    ("driver", rf"Driver Version: {{0,2}}{_NUMBER}"),
)
"""Packages, and the patterns of messages that name their version."""

_BEFORE_NAME = (
    r"^(?:E (?=  )|[^`]{1,80}(?=`))?[\s>|`'\"]{0,16}(?:(?:[A-Za-z_][\w.]{0,80}\.)?UnfilteredStackTrace: )?"
    r"(?:[A-Za-z_][\w.]{0,80}\.)?(?!Errors?:|Failure:)(?:[A-Z]\w{0,60})?"
)
_AFTER_NAME = r"(?: \(see above for traceback\))?(?::|$)"
_NAMES = ("Error", "Errors", "Exception", "Interrupt", "ProcessPool", "Expired", "StopIteration", "Failure")
"""How the names of exceptions end."""
_STATUS = r"^ *\(\d\) (?:[A-Z_]{5,30}|[A-Z][a-z ]{5,30}): "
"""One of the errors of TensorFlow that it lists after the number of root errors."""
_ZSH = r"^(?:zsh: |\[\d{1,3}\] {1,6}(?:[+-] {1,3})?\d{2,9} )(?:abort|segmentation|bus error|trace|illegal|killed)"
"""How zsh reports the end of a program."""
_STATUSES = (
    r"\b(?:CUDA_ERROR_[A-Z_]{4,40}|CU(?:BLAS|DNN)_STATUS_(?!SUCCESS)[A-Z_]{4,40}(?! for Algo)\b"
    r"|HSA_STATUS_ERROR\w{0,40}|(?:hip|cuda)Error(?!Strings?\b)[A-Z]\w{3,40}|hipError_t\(\d|miopenStatus(?!Success)[A-Z]\w{3,40})"
)
"""The codes of drivers and libraries of GPUs, whatever level the line has."""
_SIGNALS = {item.value: item.name for item in map(signal.Signals, (4, 6, 7, 8, 9, 11, 15))}
_EXIT = r"xit(?:ed|s)?[ _]?(?: with)?(?: an?)?(?: non-?zero)?(?: return)? ?(?i:(?:status )?(?:code|status))\W{1,10}?"
_SIGNAL = (
    rf"(?i:\be{_EXIT}(?P<code>-\d{{1,2}}|1[34]\d|-1073\d{{6}}|32212\d{{5}})\b"
    r"|(?:\b(?:received|caught|raising|by|from|on|exit|with)|\() ?signal(?: termination)?[: ]{1,3}(?P<number>\d{1,2})\b"
    r"|\bFAILED +0:(?P<step>\d{1,2})$"
    r"|(?:(?<!closing )signal |signals?\.|negsignal\.|\*\*\* |\d ?\(|^# {1,4})(?P<name>SIG[A-Z]{3,4})\b"
    r"|\b(?P<worker>SIG[A-Z]{3,4})(?:\(-\d| received))"
)
"""How schedulers, launchers, shells and libraries say by which signal a process ended."""
_HIGHEST = 255
"""Exit code of Unix."""
_NO_END = "(?!.{0,80}(?:OUT_OF_RANGE|Out of range|(?i:cancelled)))"
"""What an operation of TensorFlow reports is not the end of the data."""
_FATAL, _ERROR = (
    rf"(?!.*Falling back)(?:^{level}\d{{4}} |(?:^|: ){level} (?:tensorflow|external)/"
    rf"|^\[{level}(?:\d{{4}} [\d:.]{{1,20}})? \w{{1,60}}\.cpp:)"
    for level in "FE"
)
"""The levels of TensorFlow, glog and torch, unless it goes on in another way."""
EXCEPTION = 9
"""The score of the last line of a traceback."""
_LEVELS = "ERROR|FATAL|CRITICAL"
_LEVEL = (
    rf"(?!ERROR: pip's )(?:(?:^(?:\w{{1,20}}: )?|(?<=\d ))(?:{_LEVELS})\b|\b(?:{_LEVELS})(?=[\"\]:|),]|\s[-\s\[]|$))"
)
"""The level of a line, not a word in a sentence."""
_TRIGGERS = {
    _STATUS: (") INV", ") INTER", ") UN", ") NOT", ") FAIL", ") Inv", ") Inter", ") Un", ") Not", ") Fail"),
    _ZSH: ("zsh: ", "bort  ", "bort (core", "gmentation fault", "bus error", "trace trap", "gal hardware"),
    _STATUSES: ("CUDA_ERROR_", "S_STATUS_", "N_STATUS_", "A_STATUS_E", "hipError", "cudaError", "miopenStatus"),
    _FATAL: ("\nF0", "\nF1", " F0", " F1", ":F0", ":F1", "\tF0", "\tF1", "F tensorflow/", "F external/", "[F"),
    _ERROR: ("E tensorflow/", "E external/", "\nE0", "\nE1", "[E"),
    _SIGNAL: ("ignal ", "ignal: ", "SIG", "FAILED  "),
    _LEVEL: ("ERROR", "FATAL", "CRITICAL"),
}
"""Of the patterns without a text that each of their lines has."""
_SCORES: dict[int, tuple[str, ...]] = {
    EXCEPTION: (
        *(f"{_BEFORE_NAME}{name}{_AFTER_NAME}" for name in _NAMES),
        r"Error reported to Coordinator: (?!.*(?:OutOfRange|Cancelled)Error)",
    ),
    8: (
        r"^.{0,2}xception has occurred: \w", "Check failed: ", "LLVM ERROR: ", "Non-OK-status: ", _STATUS,
        r"(?:^ *|' +)what\(\): ", "terminate called without", r"^libc\+\+abi: terminating", "stack smashing detected",
        "failed assertion [`']", ": Assertion [`'].{1,300}failed", r"^Status: [A-Z_]{5,30}: ",
        r"malloc: \*\*\* error for object", "double free or corruption", r"munmap_chunk\(\): ",
        *(rf"\b{name}\(\): " for name in ("free", "malloc", "realloc")),
        *(rf"^Exception {word} .{{1,80}}?: \S" for word in ("in", "while", "during")),
        r"^\S{1,60}: error: (?:unrecognized arg|the following arguments are req|argument \S|one of the arguments)",
    ),
    7: ("Segmentation fault", "Fatal Python error: ", r"\(core dumped\)", _ZSH, "terminate called after throwing"),
    6: (
        _SIGNAL, rf"\b[Ee]{_EXIT}(?!0\b)\d", "has detected the following error: ", "Error response from daemon: ",
        r":\d+:\d+: (?:fatal )?error: ",
        "NCCL WARN ", _STATUSES, _FATAL, rf"OP_REQUIRES failed at {_NO_END}",
        rf"op_kernel\.cc:\d{{1,6}}\] (?=[A-Z][a-z]+[a-z ]{{0,20}}: ){_NO_END}",
    ),
    5: (r"Traceback \(most recent call last\)",),
    4: ("^ErrorMessage ", f"::StartAbort {_NO_END}", r"^\s*Warning {2,}[A-Z][A-Za-z]{3,40}\s", _LEVEL),
    3: (_ERROR,),
    2: (r"^(?:[\w./-]{1,60}: ){0,3}(?:fatal |internal )?error: ",),
}  # fmt: skip
ERRORS = tuple((score, text) for score, texts in _SCORES.items() for text in texts)
"""How much a line looks like the failure, and the pattern."""


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
        ended = _ended(text) if any(word in text for word in ("xit", *_TRIGGERS[_SIGNAL])) else ""
        marked = f"\n{text}\n{ended}"  # a trigger may begin with the start of the line
        rules = [rule for trigger, rules in self._by_trigger.items() if trigger in marked for rule in rules]
        found = ((rule, rule.pattern.search(text) or rule.pattern.search(ended)) for rule in dict.fromkeys(rules))
        return [Hit(rule, match) for rule, match in found if match]


def _ended(text: str) -> str:
    """The signal that a line says to have ended a process, in the words of the known failures."""
    found = re.search(_SIGNAL, text)
    number = int(next((part for part in found.group("code", "number", "step") if part), 0)) if found else 0
    names = {str(name).upper() for name in found.group("name", "worker")} if found else set()
    if abs(number) > _HIGHEST:  # a status of Windows, of which the known failures have the hexadecimal form
        return f"0x{number % (1 << 32):08X}"
    said = {abs(number) % 128, *names}  # a shell adds 128
    return next((f"Signal {item} ({name})" for item, name in _SIGNALS.items() if said & {item, name}), "")


def _rules(failures: Iterable[KnownFailure]) -> Iterator[tuple[Rule, tuple[str, ...]]]:
    for failure in failures:
        for role, patterns in zip(_ROLES, (failure.messages, failure.clues, failure.unless), strict=True):
            for text in patterns:
                yield Rule(role, text, weight(text), failure), (trigger_of(text),)


def _built_in() -> Iterator[tuple[Rule, tuple[str, ...]]]:
    for name, text in VERSIONS:
        yield Rule("version", text, 0, name=name), (trigger_of(text),)
    for score, text in ERRORS:
        yield Rule("error", text, score), _TRIGGERS.get(text) or (trigger_of(text),)
