import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cases import cases
from helpers.locks import RECORDED, lock
from kdoctor.lock.document import Accepted, Lock, LockError, Measure, NewerLockError, loads, text_of
from kdoctor.lock.values import fitting

TEXTS = st.text(max_size=12)
NUMBERS = st.floats(-1e18, 1e18)


FACTS = st.dictionaries(
    st.sampled_from(["packages", "conda", "environment", "python", "host", "gpus", "other"]) | TEXTS,
    st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3),
    max_size=3,
)


def measure(value: float, low: float, high: float) -> Measure:
    return Measure(value=value, low=low, high=high)


LOCKS = st.builds(
    Lock,
    checklist=TEXTS, version=st.integers(0, 2**63 - 1), expectations=TEXTS,
    recorded=st.sampled_from(["", RECORDED]), kdoctor=TEXTS,
    identifiers=st.booleans(),
    facts=FACTS.map(lambda found: {name: kept for name, facts in found.items() if (kept := fitting(name, facts))}),
    measured=st.dictionaries(TEXTS, st.builds(measure, NUMBERS, NUMBERS, NUMBERS), max_size=2),
)  # fmt: skip


def read(text: str) -> Lock:
    return loads(text.encode(), "job.lock.yaml")


def problem(text: str | bytes) -> str:
    """The first problem of an invalid lock, after the name of the file."""
    with pytest.raises(LockError) as caught:
        loads(text if isinstance(text, bytes) else text.encode(), "job.lock.yaml")
    assert caught.value.hint
    assert ("--no-lock" in caught.value.hint) == isinstance(caught.value, NewerLockError)
    assert caught.value.message.startswith("job.lock.yaml:")
    return caught.value.message.removeprefix("job.lock.yaml:")


def test_written_lock_is_read_back() -> None:
    whole = lock(identifiers=True, accepted=(Accepted(check="gpu.free", reason="a notebook: known"),))
    assert read(text_of(whole)) == whole


@settings(max_examples=80)
@given(LOCKS)
def test_every_lock_is_read_back(any_lock: Lock) -> None:
    assert read(text_of(any_lock)) == any_lock


def test_facts_are_sorted_one_a_line() -> None:
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


def test_only_the_date_differs_between_two_days() -> None:
    one, two = text_of(lock()), text_of(lock(recorded="2026-04-02T06:00:00+00:00"))
    differing = [pair for pair in zip(one.splitlines(), two.splitlines(), strict=True) if pair[0] != pair[1]]
    assert [first.partition(":")[0] for first, _ in differing] == ["recorded"]


def test_order_of_facts_does_not_matter() -> None:
    whole = lock()
    turned = {section: dict(reversed(list(facts.items()))) for section, facts in reversed(list(whole.facts.items()))}
    assert text_of(whole.model_copy(update={"facts": turned})) == text_of(whole)


def test_comments_and_line_ends_do_not_break_the_digest() -> None:
    text = text_of(lock())
    assert read(text.replace("facts:\n", "facts:  # seen\n").replace("\n", "\r\n")) == lock()


@cases(
    (r'keras: "3\.15\.1"', 'keras: "3.15.0"', "75:9", "digest"),
    (r"version: 3\n", "version: 4\n", "75:9", "digest"),
    (r"    container: none\n", "", "74:9", "digest"),
    (r"schema: kdoctor/lock/v1", "schema: kdoctor/lock/v2", "3:9", "kdoctor/lock/v2"),
    (r"schema: kdoctor/lock/v1", "schema: kdoctor/checklist/v1", "3:9", "kdoctor/checklist/v1"),
    (r"schema: .*\n", "", "3:1", "kdoctor/lock/v1"),
    (r"digest: .*\n", "", "3:1", "'digest'"),
    (r"(?s)facts:.*", "", "3:1", "'digest'"),
    (r"identifiers: false", "identifiers: no way", "9:14", "'no way'"),
    (r"version: 3\n", "version: true\n", "5:10", "True"),
    (r"facts:", "fcts: 1\nfacts:", "10:1", "'facts'"),
    (r'keras: "3\.15\.1"', "keras: 3.15", "44:12", "3.15"),
    (r"to: 0\.501", "to: .nan", "73:69", "finite"),
    (r"to: 0\.501", "to: yes", "73:69", "True"),
    (r", to: 0\.501", "", "73:39", "'to'"),
)
def test_untrusted_lock_is_refused(pattern: str, replacement: str, place: str, named: str) -> None:
    broken, number = re.subn(pattern, replacement, text_of(lock()), count=1)
    assert number == 1
    found = problem(broken)
    assert found.startswith(f"{place}: ")
    assert named in found


@cases(("job.lock.yaml", True), ("/x/job.lock.yaml", True), ("old.lock.yaml", False))
def test_command_records_a_checklist_that_there_is(shown: str, *, is_named: bool) -> None:
    with pytest.raises(LockError) as caught:
        loads(text_of(lock()).replace("3.15.1", "3.15.2").encode(), shown)
    assert ("kdoctor checklist record job" in str(caught.value.hint)) == is_named


def test_lock_that_ends_within_a_line_is_incomplete() -> None:
    text = text_of(lock())
    assert "'digest'" in problem(text[: text.index("keras: ") + 4])


@pytest.mark.parametrize("content", [b"", b"[]", b"a: b", b"\xff\xfe", b"x" * 600_000])
def test_other_content_is_refused(content: bytes) -> None:
    assert problem(content)


@settings(max_examples=25)
@given(st.data())
def test_truncated_lock_is_always_refused(data: st.DataObject) -> None:
    text = text_of(lock())
    cut = data.draw(st.integers(0, len(text) - 2))
    assert problem(text[:cut])


def test_lock_of_a_newer_kdoctor_is_named_as_such() -> None:
    with pytest.raises(NewerLockError):
        read(text_of(lock()).replace("schema: kdoctor/lock/v1", "schema: kdoctor/lock/v2"))


@pytest.mark.parametrize(("number", "holds"), [(0.9, False), (1.0, True), (2.0, True), (3.0, True), (3.1, False)])
def test_range_includes_its_ends(number: float, holds: bool) -> None:  # noqa: FBT001
    assert measure(2.0, 1.0, 3.0).holds(number) is holds


def test_digest_does_not_change_between_releases() -> None:
    """A changed digest would refuse all locks that exist."""
    old = Lock(
        checklist="naïve", version=3, expectations="sha256:0", recorded=RECORDED, kdoctor="0.1.0", identifiers=False,
        accepted=(Accepted(check="gpu.free", reason="a desktop"),),
        facts={"packages": {"numpy": "2.4.0", "keras": "3.15.1"}},
        measured={"smoke.baseline/mirrored/final-loss": measure(0.5, 0.499, 0.501)},
    )  # fmt: skip
    assert old.digest == "sha256:2895640d312b5005f8d2c208eb453fb4561f62a18c886174b13a6d3d16924f9b"


def test_value_that_is_no_version_is_reported_at_its_place() -> None:
    """A wrong name is reported at the name, a wrong value at the value."""
    text = text_of(lock())
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("    keras: "))
    assert problem(re.sub(r"(?m)^    keras: .*", '    keras: "$(touch x)"', text)).startswith(f"{line}:12: ")
    assert problem(re.sub(r"(?m)^    keras: ", '    "--keras": ', text)).startswith(f"{line}:5: ")


def test_invalid_yaml_is_reported_at_its_place() -> None:
    assert problem(text_of(lock()).replace("facts:\n", "facts: [\n")).startswith("12:19: ")
    conflict = text_of(lock()).replace("facts:\n", "<<<<<<< ours\nfacts:\n")
    assert problem(conflict[: conflict.index("\ndigest")]).startswith("10:1: ")
