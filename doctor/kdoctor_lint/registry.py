"""Discovers and selects lint rules. Every ``Rule`` in a module of :mod:`kdoctor_lint.rules` is applied."""

import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdoctor.defects import defect
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.model import Severity
from kdoctor_lint import rules
from kdoctor_lint.model import MEASURED, Rule

_TEXTS = Path(__file__).parent / "rules/texts"
_PART = re.compile(r"^### (title|fix|sources|why|bad|good)\n", re.MULTILINE)
_MEASURED = {
    "measured": MEASURED,
    "measured from Keras 3.10": "measured with Keras 3.10.0, 3.12.4, 3.14.0 and 3.15.1 (TensorFlow 2.21.0, "
    "two logical CPU devices)",
    "measured from Keras 3.2": "measured with releases of Keras from 3.2.1 to 3.15.1 (kdoctor matrix)",
}
_CODE_PREFIX = re.compile(r"KD\d{0,2}")


def _discover() -> Mapping[str, Rule]:
    """Rules that judge code first, then those that the linter itself reports; each group by id."""
    names = [f"{rules.__name__}.{module.name}" for module in pkgutil.iter_modules(rules.__path__)]
    modules = [pkgutil.resolve_name(name) for name in names]
    found = [_with_text(value) for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return {rule.id: rule for rule in sorted(found, key=lambda rule: (rule.judge is None, rule.id))}


def _with_text(rule: Rule) -> Rule:
    """A rule with the parts of its text that it does not have itself. A source may be a known defect of Keras."""
    file = _TEXTS / f"{rule.id.partition('.')[2]}.txt"
    parts = _PART.split(file.read_text(encoding="utf-8")) if file.exists() else [""]
    text: dict[str, Any] = dict(zip(parts[1::2], parts[2::2], strict=True))
    text |= {part: text[part].rstrip() for part in ("title", "fix") if part in text}
    lines = text.pop("sources", "").splitlines()
    known = {line: defect(line) for line in lines if line.startswith("smoke.")}
    pages = [known[line].source if line in known else [_MEASURED.get(line, line)] for line in lines]
    for one in known.values():
        text = {"why": one.why, "fix": one.fix, **text}
    text |= {"sources": tuple(page for listed in pages for page in listed)} if lines else {}
    return replace(rule, **{part: value for part, value in text.items() if not getattr(rule, part)})


RULES = _discover()  # Every rule by its id
_CODES = sorted(rule.code for rule in RULES.values())
_AVAILABLE = f"Available rules: {', '.join(_CODES)}"


RULES_BY_NAME: Mapping[str, Rule] = {
    name: rule for rule in RULES.values() for name in (rule.id, rule.id.removeprefix("lint."), rule.code)
}
"""Every rule by its id, with and without the prefix ``lint.``, and by its code."""


def rule_named(name: str) -> Rule:
    """The rule with an id, with or without the prefix ``lint.``, or with a code.

    Raises:
        UsageError: the rule is unknown.
    """
    if rule := RULES_BY_NAME.get(name):
        return rule
    meant = did_you_mean(name, [*RULES, *_CODES])
    raise UsageError(f"unknown rule {name!r}{meant}", hint=None if meant else _AVAILABLE)


def rules_named(name: str) -> Sequence[str]:
    """The ids of the rules that an id, a code or the start of a code (``KD1``) names.

    Raises:
        UsageError: no rule has this name.
    """
    of_prefix = [rule.id for rule in RULES.values() if rule.code.startswith(name) and _CODE_PREFIX.fullmatch(name)]
    return of_prefix or [rule_named(name).id]


def chosen_rules(select: Sequence[str], ignore: Sequence[str], *, notes: bool = True) -> Mapping[str, Rule]:
    """The rules to apply. Without a selection these are all, or, without notes, those that are errors and warnings.

    Raises:
        UsageError: a rule is unknown, or no rule is left.
    """
    select, ignore = ([one for given in items for one in given.split(",")] for items in (select, ignore))
    default = {rule.id for rule in RULES.values() if notes or rule.severity is not Severity.INFO}
    wanted = {name for item in select for name in rules_named(item)} or default
    wanted -= {name for item in ignore for name in rules_named(item)}
    if not wanted:
        raise UsageError("no rules selected", hint=_AVAILABLE)
    return {name: rule for name, rule in RULES.items() if name in wanted}
