"""The generated part of the page about ``kdoctor lint``, and a page for each rule."""

from collections.abc import Collection, Iterator
from pathlib import Path

from kdoctor.model import Severity
from kdoctor_lint.model import Rule
from kdoctor_lint.registry import RULES

_SECTION = """# {rule.id}

Code: {rule.code}. Severity: {rule.severity.value}

## What it does

{rule.title}

## Why is this bad?

{rule.reason}

## Example

```python
{rule.bad}```

## Use instead

{rule.fix}

```python
{rule.good}```

## References

{references}
"""


_SAMPLE = """The rules were also judged on public code: 134 scripts and notebooks with
`tf.distribute` or `multi_gpu_model` from 30 public repositories, in November 2026, with all rules and for the newest
releases. One reader compared findings with their code. Of `removed-api`, these were up to three with the same message,
of the others all. The table has the results before the corrections that followed from them."""
_JUDGED = (
    ("KD102", 2, 2, 2), ("KD103", 1, 1, 0), ("KD203", 7, 7, 0), ("KD204", 3, 3, 0), ("KD206", 1, 1, 0),
    ("KD302", 1, 1, 0), ("KD303", 2, 2, 0), ("KD305", 2, 2, 2), ("KD401", 1, 1, 0), ("KD403", 227, 92, 2),
    ("KD503", 2, 2, 0), ("KD504", 1, 1, 0), ("KD505", 6, 6, 0), ("KD508", 5, 5, 0),
)  # fmt: skip
"""The code of a rule, its findings in public scripts, how many of them were read, and how many of these were wrong."""
_OUTCOME = """Of the errors and warnings that were read, {right} of {read} were right ({percent:.0f} %), and
all {hints} hints. The wrong ones were optimizers created in the scope (KD102), `TF_CONFIG` for processes that a
notebook starts (KD305), and code for graph mode or for `tensorflow.compat.v2` (KD403). The rules no longer report them,
and the labelled set has a case of each. Rules that are not in the table had no findings."""
_RECALL = """### What it finds

For 199 other scripts and notebooks from 110 public repositories, one reader read each script in full and listed its
pitfalls before the linter ran: mistakes on several replicas, and what fails with the newest releases. A pitfall counts
once for each script, a removed name once for each name. They were read in seven parts. After each part the classes of
misses were corrected, so only what the linter found in a part at first is an estimate for other scripts. Six entries of
the list that the code of the newest releases disproves do not count."""
_PARTS = ((16, 30, 19), (43, 110, 68), (23, 85, 58), (17, 40, 27), (17, 46, 33))
"""Scripts, pitfalls and how many of them were found at first, of the last parts in the order of reading."""
_LAST_PART = """Six scripts of the last part are from repositories that an earlier part had, too. Without them, 16 of 24
pitfalls were found (67 %). The whole sample by rule, where a pitfall found now may be one that a correction is based
on:"""
_PITFALLS = (
    ("KD101", 2, 0, 0, 1, 1), ("KD102", 6, 4, 4, 4, 0), ("KD103", 13, 7, 9, 7, 0), ("KD104", 2, 2, 2, 2, 0),
    ("KD201", 4, 2, 2, 3, 0), ("KD202", 8, 5, 5, 6, 0), ("KD203", 28, 17, 18, 18, 0), ("KD204", 30, 23, 26, 24, 0),
    ("KD205", 12, 2, 7, 2, 0), ("KD206", 7, 2, 3, 2, 0), ("KD207", 2, 1, 2, 1, 0), ("KD209", 2, 0, 1, 0, 0),
    ("KD301", 19, 7, 11, 7, 0), ("KD302", 8, 5, 5, 5, 0), ("KD303", 3, 3, 3, 3, 0), ("KD304", 10, 8, 9, 10, 1),
    ("KD305", 1, 1, 1, 1, 0), ("KD306", 1, 0, 1, 0, 0), ("KD307", 6, 0, 0, 0, 0), ("KD308", 2, 1, 1, 1, 0),
    ("KD309", 2, 1, 2, 1, 0), ("KD401", 13, 13, 13, 13, 0), ("KD402", 2, 0, 0, 0, 0),
    ("KD403", 238, 167, 216, 193, 5),
    ("KD501", 7, 1, 4, 1, 0), ("KD503", 20, 9, 11, 15, 0), ("KD504", 12, 3, 6, 5, 1), ("KD505", 0, 0, 0, 3, 0),
    ("KD508", 5, 3, 4, 3, 0), ("KD901", 3, 3, 3, 3, 0), ("none", 26, 0, 0, 0, 0),
)  # fmt: skip
"""The code of a rule, pitfalls that a reader listed, how many of them the linter found first and finds now, its first
findings, and how many of these were wrong. A pitfall can have several findings, and a finding need not be a pitfall."""
_MISSED = """Of its first findings, {wrong} of {found} errors and warnings were wrong
({percent:.0f} % right), and none of the {hints} hints. Wrong were calls after a comparison with a version, Dropout with
a rate of zero, a model saved to `/tmp`, and a model whose first call is `model.call()`. They are no longer reported.
Together {now} of {all} pitfalls are found now ({recall:.0f} %). What is missed depends on code of other files or
libraries that is not followed, on values that are only known at run time, or has no rule (row "none"): a second
strategy, cached augmentation, gradients clipped by hand, a learning rate that is scaled while the batch is not, losses
that are reported with a wrong value. Shuffled data that every worker reads completely (KD307) is not reported on
purpose."""


def pages() -> dict[str, str]:
    """The page of the linter with all rules, and the page of each, by path on the site."""
    rows = [
        f"| {rule.code} | [{rule.id}](lint/{rule.id.partition('.')[2]}.md) | {rule.severity.value} | {rule.title} |\n"
        for rule in RULES.values()
    ]
    page = Path(__file__).with_name("lint.md").read_text(encoding="utf-8")
    page = page.replace("<!-- accuracy -->", _accuracy()).replace("<!-- rules -->\n", "".join(rows))
    return {"lint.md": page} | {f"lint/{rule.id.partition('.')[2]}.md": _section(rule) for rule in RULES.values()}


def _accuracy() -> str:
    rows = [f"| {code} | {found} | {read} | {wrong} |" for code, found, read, wrong in _JUDGED]
    hints = {rule.code for rule in RULES.values() if rule.severity is Severity.INFO}
    read = sum(item[2] for item in _JUDGED if item[0] not in hints)
    right = read - sum(item[3] for item in _JUDGED if item[0] not in hints)
    of_hints = sum(item[2] for item in _JUDGED if item[0] in hints)
    outcome = _OUTCOME.format(right=right, read=read, percent=100 * right / read, hints=of_hints)
    table = ["| Code | Findings | Read | Wrong |", "| --- | --- | --- | --- |", *rows]
    return "\n\n".join([_SAMPLE, "\n".join(table), outcome, *_recall(hints)])


def _recall(hints: Collection[str]) -> Iterator[str]:
    yield _RECALL
    parts = [f"| {scripts} | {listed} | {found} | {100 * found / listed:.0f} % |" for scripts, listed, found in _PARTS]
    yield "\n".join(["| Scripts | Pitfalls | Found at first | Share |", "| --- " * 4 + "|", *parts])
    yield _LAST_PART
    table = ["| Code | Pitfalls | Found at first | Found now | First findings | Wrong |", "| --- " * 6 + "|"]
    yield "\n".join([*table, *("| " + " | ".join(map(str, row)) + " |" for row in _PITFALLS)])
    pitfalls, _, now, *_ = map(sum, zip(*(row[1:] for row in _PITFALLS), strict=True))
    strict = [row for row in _PITFALLS if row[0] not in hints]
    found, wrong = sum(row[4] for row in strict), sum(row[5] for row in strict)
    yield _MISSED.format(
        wrong=wrong,
        found=found,
        percent=100 * (found - wrong) / found,
        hints=sum(row[4] for row in _PITFALLS if row[0] in hints),
        now=now,
        all=pitfalls,
        recall=100 * now / pitfalls,
    )


def _section(rule: Rule) -> str:
    references = [f"- <{item}>" if item.startswith("https://") else f"- {item}" for item in rule.sources]
    return _SECTION.format(rule=rule, references="\n".join(references)).lstrip("\n")
