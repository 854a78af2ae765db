"""Discovers and selects lint rules. Every ``Rule`` in a module of :mod:`kdoctor_lint.rules` is applied."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence

from kdoctor.errors import UsageError, did_you_mean
from kdoctor_lint import rules
from kdoctor_lint.model import Rule


def _discover() -> Mapping[str, Rule]:
    """Rules that judge code first, then those that the linter itself reports; each group by id."""
    names = [f"{rules.__name__}.{module.name}" for module in pkgutil.iter_modules(rules.__path__)]
    modules = [pkgutil.resolve_name(name) for name in names]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return {rule.id: rule for rule in sorted(found, key=lambda rule: (rule.judge is None, rule.id))}


RULES = _discover()
"""Every rule by its id."""


def rule_named(name: str) -> Rule:
    """The rule with an id, with or without the prefix ``lint.``.

    Raises:
        UsageError: the rule is unknown.
    """
    rule = RULES.get(name) or RULES.get(f"lint.{name}")
    if rule is None:
        raise UsageError(
            f"unknown rule {name!r}{did_you_mean(name, RULES)}", hint="Available rules: " + ", ".join(RULES)
        )
    return rule


def chosen_rules(select: Sequence[str], ignore: Sequence[str]) -> Mapping[str, Rule]:
    """The rules selected by the options.

    Raises:
        UsageError: a rule is unknown, or no rule is left.
    """
    wanted = {rule_named(name).id for name in select} or set(RULES)
    wanted -= {rule_named(name).id for name in ignore}
    if not wanted:
        raise UsageError("no rules selected", hint="Available rules: " + ", ".join(RULES))
    return {name: rule for name, rule in RULES.items() if name in wanted}
