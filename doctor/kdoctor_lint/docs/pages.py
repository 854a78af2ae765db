"""The generated part of the page about ``kdoctor lint``, and a page for each rule."""

from pathlib import Path

from kdoctor_lint.engine import lint_script
from kdoctor_lint.model import Rule
from kdoctor_lint.registry import RULES
from kdoctor_lint.script import parse_script


def pages() -> dict[str, str]:
    """The page of the linter with all rules, and the page of each, by path on the site."""
    names = {rule.id: f"lint/{rule.id.partition('.')[2]}.md" for rule in RULES.values()}
    rows = "".join(f"| {rule.code} | [{rule.id}]({names[rule.id]}) | {_described(rule)} |\n" for rule in RULES.values())
    page = Path(__file__).with_name("lint.md").read_text(encoding="utf-8").replace("<!-- rules -->\n", rows)
    return {"lint.md": page} | {names[rule.id]: _section(rule) for rule in RULES.values()}


def _described(rule: Rule) -> str:
    """The severity, what the rule does, and the line that it finds in its example."""
    found, _ = lint_script(parse_script("train.py", rule.bad.encode()), RULES)
    return f"{rule.severity.value} | {rule.title} | `{found[0].source if found else rule.bad.strip()}`"


def _section(rule: Rule) -> str:
    references = [f"- <{item}>" if item.startswith("https://") else f"- {item}" for item in rule.sources]
    template = Path(__file__).with_name("rule.md.txt").read_text(encoding="utf-8")
    return template.format(rule=rule, references="\n".join(references))
