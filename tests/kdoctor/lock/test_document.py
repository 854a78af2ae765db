from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.locks import lock
from kdoctor.lock.document import Accepted, Lock, LockError, Measure, NewerLockError, loads, text_of

TEXTS = st.text(max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LOCKS = st.builds(
    Lock,
    checklist=TEXTS, version=st.integers(), expectations=TEXTS, recorded=TEXTS, kdoctor=TEXTS,
    identifiers=st.booleans(),
    facts=st.dictionaries(TEXTS, st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3), max_size=3),
    measured=st.dictionaries(TEXTS, st.builds(Measure, value=NUMBERS, low=NUMBERS, high=NUMBERS), max_size=2),
)  # fmt: skip


def read(text: str) -> Lock:
    return loads(text.encode(), "job.lock.yaml")


def told(text: str | bytes) -> str:
    with pytest.raises(LockError) as caught:
        loads(text if isinstance(text, bytes) else text.encode(), "job.lock.yaml")
    newer = isinstance(caught.value, NewerLockError)
    assert caught.value.hint == (
        "Upgrade keras-doctor; kdoctor check --no-lock does without the lock"
        if newer
        else "Take it back from git, or record it anew: kdoctor checklist record CHECKLIST"
    )
    assert caught.value.message.startswith("job.lock.yaml: ")
    return caught.value.message.removeprefix("job.lock.yaml: ")


def test_what_is_written_is_read_back() -> None:
    whole = lock(identifiers=True, accepted=(Accepted(check="gpu.free", reason="a notebook: known"),))
    assert read(text_of(whole)) == whole


@settings(max_examples=80, deadline=None)
@given(LOCKS)
def test_every_lock_is_read_back(any_lock: Lock) -> None:
    assert read(text_of(any_lock)) == any_lock


def test_every_fact_has_its_line_and_they_are_sorted() -> None:
    whole = lock()
    text = text_of(whole)
    assert text.endswith("\n")
    lines = text.splitlines()
    for section, facts in whole.facts.items():
        start = lines.index(f"  {section}:")
        names = [line.strip().partition(":")[0] for line in lines[start + 1 : start + 1 + len(facts)]]
        assert [name.strip('"').partition(" ")[0] for name in names] == [
            name.partition(" ")[0].partition(":")[0] for name in sorted(facts)
        ]
    assert yaml.safe_load(text)["facts"]["gpus"]["model.NVIDIA H100 80GB HBM3"] == "8"


def test_only_the_line_of_the_date_differs_between_two_days() -> None:
    one, two = text_of(lock()), text_of(lock(recorded="2026-04-02T06:00:00+00:00"))
    differing = [pair for pair in zip(one.splitlines(), two.splitlines(), strict=True) if pair[0] != pair[1]]
    assert [first.partition(":")[0] for first, _ in differing] == ["recorded"]


def test_the_order_in_which_facts_came_does_not_show() -> None:
    whole = lock()
    turned = {section: dict(reversed(list(facts.items()))) for section, facts in reversed(list(whole.facts.items()))}
    assert text_of(replace(whole, facts=turned)) == text_of(whole)


def test_comments_and_line_ends_are_no_change() -> None:
    text = text_of(lock())
    assert read(text.replace("facts:\n", "facts:  # seen\n").replace("\n", "\r\n")) == lock()


CHANGED = "it was changed since it was recorded (its digest does not hold), so it is no evidence"


@pytest.mark.parametrize(
    ("pattern", "replacement", "words"),
    [
        (r'keras: "3\.15\.1"', 'keras: "3.15.0"', CHANGED),
        (r"version: 3\n", "version: 4\n", CHANGED),
        (r"    container: none\n", "", CHANGED),
        (r"schema: kdoctor/lock/v1", "schema: kdoctor/lock/v2",
         "written by a newer kdoctor (schema kdoctor/lock/v2, this one reads kdoctor/lock/v1)"),
        (r"schema: kdoctor/lock/v1", "schema: kdoctor/checklist/v1",
         "this is no lock: its schema is 'kdoctor/checklist/v1', not 'kdoctor/lock/v1'"),
        (r"schema: .*\n", "", "this is no lock: 'schema: kdoctor/lock/v1' is missing"),
        (r"digest: .*\n", "", "'digest' is missing: the file ends too early, or was changed by hand"),
        (r"(?s)facts:.*", "", "'facts', 'digest' is missing: the file ends too early, or was changed by hand"),
        (r"identifiers: false", "identifiers: no way", "'identifiers' is 'no way', which no lock has"),
        (r"version: 3\n", "version: true\n", "'version' is True, which no lock has"),
        (r"facts:", "fcts: 1\nfacts:", "unknown key 'fcts'; did you mean 'facts'?"),
        (r'keras: "3\.15\.1"', "keras: 3.15", "facts of 'packages' are not all text"),
        (r"to: 0\.501", "to: .nan", "the measure 'smoke.baseline/mirrored/final-loss' is not finite"),
        (r"to: 0\.501", "to: yes", "the measure 'smoke.baseline/mirrored/final-loss' holds what is no number"),
        (r", to: 0\.501", "", "the measure 'smoke.baseline/mirrored/final-loss' has not just value, from and to"),
    ],
)  # fmt: skip
def test_a_lock_that_cannot_be_trusted_is_refused(pattern: str, replacement: str, words: str) -> None:
    broken, number = re.subn(pattern, replacement, text_of(lock()), count=1)
    assert number == 1
    assert told(broken) == words


def test_a_merge_conflict_is_told_with_its_line() -> None:
    text = text_of(lock()).replace("facts:\n", "<<<<<<< ours\nfacts:\n")
    assert told(text) == "line 10: an unresolved merge conflict (<<<<<<<): resolve it first"


def test_a_lock_that_is_cut_within_a_line_is_told_as_cut() -> None:
    text = text_of(lock())
    assert told(text[: text.index("keras: ") + 4]) == (
        "the file ends too early ('digest' is missing), or was changed by hand"
    )


def test_a_key_twice_is_told_with_its_line() -> None:
    assert "the key 'facts' stands here twice" in told(text_of(lock()).replace("measured:", "facts:"))


@pytest.mark.parametrize("content", [b"", b"[]", b"a: b", b"\xff\xfe", b"x" * 600_000])
def test_what_is_no_lock_at_all_is_refused(content: bytes) -> None:
    assert told(content)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_truncated_lock_is_never_taken_for_a_whole_one(data: st.DataObject) -> None:
    text = text_of(lock())
    cut = data.draw(st.integers(0, len(text) - 2))
    assert told(text[:cut])
