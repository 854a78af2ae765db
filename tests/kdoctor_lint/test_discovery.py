"""A rule is found by its file, and its text by its name. ``tests/test_contributing.py`` adds one."""

from pathlib import Path

import kdoctor_lint
from kdoctor_lint.registry import RULES


def test_rules_are_ordered_by_id_with_internal_ones_last() -> None:
    assert list(RULES) == sorted(RULES, key=lambda name: (RULES[name].judge is None, name))
    assert list(RULES)[-4:] == [
        "lint.ignore-without-reason",
        "lint.syntax-error",
        "lint.unreadable-file",
        "lint.unused-ignore",
    ]


def test_rules_have_texts_of_their_name() -> None:
    files = {path.stem for path in (Path(kdoctor_lint.__file__).parent / "rules/texts").iterdir()}
    assert files == {name.partition(".")[2] for name, rule in RULES.items() if rule.judge}
