"""The text of ``kdoctor lint --explain``."""

import textwrap

from kdoctor.catalog.explanations import Explanations
from kdoctor.text.wrap import wrap
from kdoctor_lint.model import Rule
from kdoctor_lint.registry import RULES, RULES_BY_NAME


def render_rule(rule: Rule) -> str:
    """What a rule does, with an example, for a terminal."""
    lines = [f"{rule.code} {rule.id} ({rule.severity.value})", "", *wrap(rule.title), ""]
    lines += ["Why it matters", *wrap(rule.reason, first="  "), ""]
    lines += ["Example", textwrap.indent(rule.bad, "    ")]
    lines += ["Fix", *wrap(rule.fix, first="  "), "", textwrap.indent(rule.good, "    ")]
    lines += ["Source", *(f"  {source}" for source in rule.sources), ""]
    if rule.judge:
        lines += ["To ignore a finding", f"  # kdoctor: ignore[{rule.id}] your reason", f"  # noqa: {rule.code}", ""]
    return "\n".join(lines)


def explain(name: str) -> str:
    """A rule, or all of them for ``lint``; empty for another name."""
    if name == "lint":
        rules = sorted(f"{rule.code} {rule.id}: {rule.title}" for rule in RULES.values())
        lines = [line for rule in rules for line in wrap(rule, rest="      ")]
        return "\n".join([*lines, "", "Details: kdoctor explain CODE", ""])
    return render_rule(RULES_BY_NAME[name]) if name in RULES_BY_NAME else ""


EXPLANATIONS = Explanations(names=lambda: ["lint", *RULES, *(rule.code for rule in RULES.values())], explain=explain)
