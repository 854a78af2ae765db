"""Strings, as far as the script shows them."""

import re
from collections.abc import Mapping, Sequence
from string import Formatter

from kdoctor_lint.flow.values import UNKNOWN, External, Given, Method, Number, Object, Text, Value, is_unknown
from kdoctor_lint.names import Kind, kind_of

_DIFFERS = re.compile(
    r"chief|rank|task|worker|primary|main_process|master|coordinator|host|node|proc|slurm|job|local|scratch|tmp|index"
    r"|(?<![a-z])id(?![a-z])",
    re.IGNORECASE,
)
"""Names of options and of environment variables that may differ between workers."""
_SAME = re.compile(r"(SLURM_(ARRAY_)?JOB(_?ID|_NAME)|PBS_JOBID|LSB_JOBID)$")
"""Environment variables that are the same on all nodes of a job."""
_DIGITS = re.compile(r"%[-#0 +\d.]*[diYmHMSfyj]$")
"""A field at the end that is replaced by digits."""
_FIELD = re.compile(r"%(\(\w+\))?[-#0 +\d.*]*[a-zA-Z]")
_FLAGS = ("absl.flags.FLAGS.", "tensorflow.compat.v1.flags.FLAGS.", "tensorflow.flags.FLAGS.")


def given(name: str, default: str = "", home: int = 0) -> Value:
    """Something from elsewhere. It is not shown if it may differ between workers."""
    shown = "" if _DIFFERS.search(name) and not _SAME.search(name) else f"{{{name}}}"
    return Given(shown, default, frozenset({re.split(r"\W+", name.strip("'\"[]"))[-1]}), home)


def as_number(value: Value) -> Value:
    """What comes from elsewhere as a number with its names."""
    inherited = isinstance(value, Method) and isinstance(value.receiver, Object)
    text = given(value.name) if isinstance(value, Method) and inherited else value
    text = text if isinstance(text, Number | Text) else as_text(text)
    if not isinstance(text, Given) or not text.names:
        return value
    certain = isinstance(value, Given | External) and not text.home
    return Number(None, text.names, given=certain, home=text.home)


def as_text(value: Value) -> Value:
    """A string, or what comes from elsewhere, or unknown."""
    if isinstance(value, External) and value.name.startswith(_FLAGS):
        return given(f"FLAGS.{value.name.rpartition('.')[2]}")
    if isinstance(value, External) and kind_of(value.name) is Kind.UNKNOWN:
        return given(value.name.lstrip("."))
    if isinstance(value, Method) and is_unknown(value.receiver):
        return given(value.name)
    if isinstance(value, Number) and value.value is not None:
        return Text(f"{value.value:g}")
    return value if isinstance(value, Text | Given) else UNKNOWN


def text_of(parts: Sequence[Value], between: str) -> Value:
    """Strings joined. If a part is unknown, only the end is known."""
    texts = [as_text(part) for part in parts]
    if all(isinstance(text, Text) for text in texts):
        return Text(between.join(_shown(text) for text in texts))
    shown = between.join(map(_shown, texts)) if all(map(_shown, texts)) else ""
    last = texts[-1]
    end = last.end if isinstance(last, Given) else between + last.value if isinstance(last, Text) else ""
    return Given(shown, end) if shown or end else UNKNOWN


def formatted(template: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """The result of ``template.format(...)``."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return UNKNOWN
    places = iter(args)
    values: list[Value] = []
    for text, field, spec, conversion in parts:
        values.append(Text(text))
        if field is not None:
            value = next(places, UNKNOWN) if not field else keywords.get(field, UNKNOWN)
            values.append(UNKNOWN if spec or conversion else value)
    return text_of(values, "") if values else Text("")


def interpolated(template: str) -> Value:
    """The result of ``template % values``, or of ``strftime``."""
    end = _FIELD.split(template)[-1]
    return Given(end=end or ("00" if _DIGITS.search(template) else ""))


def ending_of(value: Value | None) -> str:
    """What a string certainly ends with."""
    return value.value if isinstance(value, Text) else value.end if isinstance(value, Given) else ""


def _shown(text: Value) -> str:
    return text.value if isinstance(text, Text) else text.shown if isinstance(text, Given) else ""
