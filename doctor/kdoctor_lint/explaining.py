"""What ``kdoctor explain`` says about rules."""

from kdoctor.catalog.explanations import Explanations
from kdoctor_lint.registry import RULES, RULES_BY_NAME
from kdoctor_lint.report.explain import render_rule


def _explain(name: str) -> str:
    return render_rule(RULES_BY_NAME[name]) if name in RULES_BY_NAME else ""


EXPLANATIONS = Explanations(names=lambda: list(RULES), explain=_explain)
