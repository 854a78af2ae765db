"""The rules as a page of documentation, which ``make docs`` writes."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor_lint.model import Rule
from kdoctor_lint.report.words import one_line
from kdoctor_lint.rules import RULES

_HEAD = """# The rules of `kdoctor lint`

<!-- Written by `make docs` from the rules themselves; change them, not this page. -->

`kdoctor lint train.py notebooks/` reads training scripts and notebooks without running them, and without TensorFlow.
It follows names through imports and assignments, and functions of the same file through their calls, in and out of
`strategy.scope()`. It speaks only of what the file shows for certain: a strategy that
comes from elsewhere, a model that is made by an imported function, or a scope that is entered by hand are not judged.

Exit codes: 0 nothing at or over `--fail-on` (default `warning`); 1 a finding at or over it, such as a file that cannot
be read; 2 wrong usage.

To silence a rule on a line, name it and say why; without a reason, the comment is itself a finding:

```python
dataset = dataset.batch(batch_size)  # kdoctor: ignore[lint.no-prefetch] the data is in memory
```

The comment may also stand alone on the line above. Several rules are separated by commas.

| Rule | Severity | What should be so |
| --- | --- | --- |
"""


def page() -> str:
    """The page."""
    table = "\n".join(f"| [{rule.id}](#{_anchor(rule)}) | {rule.severity.value} | {rule.title} |" for rule in _rules())
    return f"{_HEAD}{table}\n\n" + "\n".join("\n".join(_section(rule)) for rule in _rules())


def _rules() -> Iterator[Rule]:
    yield from RULES.values()


def _anchor(rule: Rule) -> str:
    return rule.id.replace(".", "")


def _section(rule: Rule) -> Iterator[str]:
    yield from (f"## {rule.id}", "", rule.title, "", f"**Why.** {one_line(rule.why)}", "")
    yield from ("Instead of", "", "```python", rule.bad.rstrip("\n"), "```", "")
    yield from ("write", "", "```python", rule.good.rstrip("\n"), "```", "")
    yield from (f"Sources: {', '.join(rule.sources)}", "")
