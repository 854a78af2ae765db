"""Patterns are found by a literal text and take linear time, however a line is made."""

import re
import time

import pytest

from helpers.cases import cases
from helpers.patterns import problems_of
from kdoctor.failures.known import load_failures
from kdoctor.failures.pattern import literals, readable, squeezed, tokens
from kdoctor_diagnose.recogniser import ERRORS, VERSIONS
from kdoctor_diagnose.triggers import trigger_of

PATTERNS = sorted(
    {
        pattern
        for failure in load_failures().failure_modes
        for pattern in (*failure.messages, *failure.at_end, *failure.clues, *failure.unless)
    }
)
LINE = 4000
"""Characters of the longest line that is searched."""
SECONDS = 0.05


@cases(
    (r"(?:a+)+ failed", "contains another"),
    (r"failed .*nan", "not bounded"),
    (r"failed .{0,9000}nan", "more than"),
    (r"failed|aborted", "not in a group"),
    (r"\d+ \w+", "no literal"),
    (r"failed (", "missing"),
)
def test_bad_pattern_is_refused(pattern: str, problem: str) -> None:
    assert any(problem in text for text in problems_of(pattern))


def test_shipped_patterns_keep_the_rules() -> None:
    assert [problem for pattern in PATTERNS for problem in problems_of(pattern)] == []


def test_trigger_is_a_part_of_the_pattern() -> None:
    assert [pattern for pattern in PATTERNS if not any(trigger_of(pattern) in text for text in literals(pattern))] == []


def adversarial(pattern: str) -> list[str]:
    """Lines in which every part of the pattern begins again and again, and the last one is missing."""
    parts = literals(pattern)
    begun = "".join(f"{part} 1a" for part in parts[:-1]) or parts[-1][:-1]
    repeats = [*parts, begun, readable(pattern)[:-1], "a", "1", " ", "a 1", "/", "="]
    return [(part * LINE)[:LINE] for part in repeats if part]


def test_no_pattern_takes_long_on_any_line() -> None:
    """Each search of a line of 4,000 characters ends at once; a catastrophic one takes minutes."""
    slow = {}
    rules = [*PATTERNS, *(text for *_, text in VERSIONS), *(text for *_, text in ERRORS)]
    for pattern in rules:
        compiled = re.compile(pattern)
        lines = adversarial(pattern) if pattern in PATTERNS else ["a" * LINE, "Error" * 800, "1." * 2000]
        started = time.process_time()
        for line in lines:
            compiled.search(line)
        used = (time.process_time() - started) / len(lines)
        if used > SECONDS:
            slow[pattern] = used
    assert slow == {}


def test_named_parts_are_found() -> None:
    failure = load_failures().by_id["cudnn_older_than_build"]
    found = squeezed(failure.messages[0]).search("loadedruntimecudnnlibrary:9.1.0butsourcewascompiledwith:9.3.0")
    assert found is not None
    assert (found["loaded"], found["built"]) == ("9.1.0", "9.3.0")


def test_tokens_cover_the_pattern() -> None:
    assert ["".join(text for _, text in tokens(pattern)) for pattern in PATTERNS] == PATTERNS


@pytest.mark.tensorflow
def test_names_of_tensorflow_1_are_those_that_only_its_compatibility_module_has() -> None:
    import tensorflow as tf

    pattern = load_failures().by_id["tf1_script"].messages[0]
    listed = set(pattern.rpartition("(?:")[2].rstrip(")'").split("|"))
    only_in_v1 = {name for name in dir(tf.compat.v1) if not name.startswith("_")} - set(dir(tf))
    assert listed == only_in_v1 | {"contrib", "estimator"}
