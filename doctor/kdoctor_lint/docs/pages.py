"""The generated part of the page about ``kdoctor lint``, and a page for each rule."""

from pathlib import Path

from kdoctor_lint.model import Rule
from kdoctor_lint.registry import RULES


def pages() -> dict[str, str]:
    """The page of the linter with all rules, and the page of each, by path on the site."""
    rows = [
        f"| {rule.code} | [{rule.id}](lint/{rule.id.partition('.')[2]}.md) | {rule.severity.value} | {rule.title} |\n"
        for rule in RULES.values()
    ]
    page = Path(__file__).with_name("lint.md").read_text(encoding="utf-8")
    return {"lint.md": page.replace("<!-- rules -->\n", "".join(rows))} | {
        f"lint/{rule.id.partition('.')[2]}.md": _section(rule) for rule in RULES.values()
    }


def _section(rule: Rule) -> str:
    references = [f"- <{item}>" if item.startswith("https://") else f"- {item}" for item in rule.sources]
    template = Path(__file__).with_name("rule.md.txt").read_text(encoding="utf-8")
    return template.format(rule=rule, references="\n".join(references))
