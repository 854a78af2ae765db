import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest

import kdoctor
from helpers import facts as healthy
from helpers.cases import cases
from kdoctor.facts import Environment, FactGroup, Gpus, Host, SmokeCase, SmokeRun, SmokeRuns, Unavailable
from kdoctor.snapshot.document import SCHEMA, Snapshot, SnapshotError, dumps, json_schema, load, loads
from kdoctor.snapshot.redaction import Redaction

NOBODY = Redaction(home="", user="")
RUN = SmokeRun(
    scenario="smoke.baseline",
    version=1,
    devices_kind="cpu",
    replicas_requested=2,
    cases=(SmokeCase(name="mirrored", outcome="trained", losses=(1.5, None), seconds=2),),
)


def machine() -> dict[type[FactGroup], FactGroup | Unavailable]:
    groups = (*healthy.h100_node(), Host(os="Linux", cpu_affinity=(0, 1)), Environment(variables={"TF_X": "1"}))
    facts: dict[type[FactGroup], FactGroup | Unavailable] = {type(group): group for group in groups}
    facts[SmokeRuns] = SmokeRuns(runs={"smoke.baseline": RUN, "smoke.other": Unavailable(unavailable="not here")})
    return facts


GROUPS = {kind.group: kind for kind in machine()}


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(dumps(Snapshot.now(machine()), NOBODY)), **changes}


def refusal(data: str | bytes | Mapping[str, object]) -> str:
    with pytest.raises(SnapshotError) as error:
        loads(data if isinstance(data, (str, bytes)) else json.dumps(data), GROUPS)
    return str(error.value)


def test_facts_round_trip() -> None:
    snapshot = Snapshot.now({**machine(), Gpus: Unavailable(unavailable="no driver")})
    assert loads(dumps(snapshot, NOBODY), GROUPS) == snapshot


def test_snapshot_has_time_and_version() -> None:
    snapshot = Snapshot.now({})
    assert snapshot.kdoctor == kdoctor.__version__
    age = datetime.now(timezone.utc) - datetime.fromisoformat(snapshot.created_at)
    assert timedelta(seconds=-1) <= age < timedelta(minutes=5)


def test_equal_facts_give_equal_text() -> None:
    snapshot = Snapshot.now(machine())
    backwards = replace(snapshot, facts=dict(reversed(list(snapshot.facts.items()))))
    assert dumps(snapshot, NOBODY) == dumps(backwards, NOBODY)


def test_uncollected_group_is_absent() -> None:
    assert loads(dumps(Snapshot.now({}), NOBODY), GROUPS).facts == {}


def test_unknown_groups_are_noted_and_unknown_fields_ignored() -> None:
    made = document()
    made["facts"]["weather"] = {"sunny": True}
    made["facts"]["host"]["colour"] = "green"
    snapshot = loads(json.dumps(made), GROUPS)
    assert snapshot.facts == machine()
    assert [note.split()[0] for note in snapshot.notes] == ["facts.weather"]


def test_time_to_come_is_noted() -> None:
    (note,) = loads(json.dumps(document() | {"created_at": "2999-01-01T00:00:00+00:00"}), GROUPS).notes
    assert "2999-01-01" in note


def test_third_party_group_round_trips() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Weather(FactGroup):
        group: ClassVar[str] = "weather"
        sunny: bool

    snapshot = Snapshot.now({Weather: Weather(sunny=True)})
    assert loads(dumps(snapshot, NOBODY), {"weather": Weather}) == snapshot


def test_snapshot_is_redacted() -> None:
    facts: dict[type[FactGroup], FactGroup | Unavailable] = {
        Environment: Environment(variables={"TF_X": "/home/alice/x"})
    }
    text = dumps(Snapshot.now(facts), Redaction(home="/home/alice", user="alice"))
    assert "alice" not in text
    assert '"TF_X": "~/x"' in text
    assert str(Path.home() / "x") not in dumps(
        Snapshot.now({Environment: Environment(variables={"TF_X": str(Path.home() / "x")})})
    )


def test_schema_describes_what_is_written() -> None:
    schema = json_schema(GROUPS)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document())
    validator.validate({**document(), "facts": {"gpus": {"unavailable": "no driver"}}})
    assert not validator.is_valid({**document(), "facts": {"gpus": {"state": "splendid"}}})
    assert not validator.is_valid({**document(), "schema": "kdoctor/snapshot/v2"})


def test_truncated_file_says_where() -> None:
    text = dumps(Snapshot.now(machine()), NOBODY)
    message = refusal(text[: len(text) // 2])
    assert "JSON" in message
    assert "line " in message
    assert "column " in message
    assert refusal('{"schema": "kdoctor/snapsh').endswith("(the file is truncated)")
    assert refusal('{"a": 1,').endswith("(the file is truncated)")


@cases(
    ("", "empty"),
    ("[]", "found a list"),
    ("{}", f"expected schema {SCHEMA!r}, found no schema"),
    ('{"schema": "other/v1"}', "found 'other/v1'"),
    ('{"schema": "kdoctor/report/v1"}', "kdoctor check --save-snapshot FILE"),
    ('{"schema": 1}', "found 1"),
    ("{schema: x}", "at line 1, column 2"),
    ("[" * 100_000, "nested too deeply"),
    (f'{{"schema": "{SCHEMA}", "facts": {{"a": {"[" * 300}{"]" * 300}}}}}', "not a snapshot: recursion limit exceeded"),
    ('{"a": 1, "b": 2, "c": 3, "b": 4}', "duplicate key 'b'"),
)
def test_other_files_are_refused_with_what_was_found(data: str, found: str) -> None:
    assert refusal(data).endswith(found)


def test_newer_schema_is_refused() -> None:
    message = refusal(document(schema="kdoctor/snapshot/v2"))
    assert "kdoctor/snapshot/v2" in message
    assert "upgrade keras-doctor" in message


def test_invalid_utf8_is_refused() -> None:
    assert refusal(b'{"schema": "\xff"}').endswith("byte 12")


def test_byte_order_mark_is_accepted() -> None:
    assert loads(b"\xef\xbb\xbf" + json.dumps(document()).encode(), GROUPS).facts == machine()


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5000])
def test_number_that_is_not_finite_or_too_large_is_refused(number: str) -> None:
    text = json.dumps(document()).replace('"index": 0', f'"index": {number}', 1)
    assert number in text
    assert refusal(text).startswith(("facts.gpus: ", "facts: ", "not a snapshot: ", "invalid JSON: "))


@cases(
    (("facts",), [], "facts: Input should be an object, found a list"),
    (("created_at",), 5, "created_at: Input should be a valid string, found the number 5"),
    (("created_at",), "yesterday", "created_at: it is not a time in ISO 8601 with its time zone, found "),
    (("created_at",), "2026-01-01T00:00:00", "created_at: it is not a time"),
    (("facts", "host"), 5, "facts.host: "),
    (("facts", "host"), {}, "missing key facts.host.os"),
    (("facts", "host", "os"), 5, "facts.host.os: Input should be a valid string, found the number 5"),
    (
        ("facts", "gpus", "devices", 1, "index"),
        "x",
        "facts.gpus.devices[1].index: Input should be a valid integer, found the string 'x'",
    ),
    (("facts", "gpus", "state"), "splendid", "facts.gpus.state: Input should be 'ready'"),
    (("facts", "gpus", "count"), "8", "facts.gpus.count: Input should be a valid integer, found the string '8'"),
    (("facts", "gpus", "count"), True, "facts.gpus.count: Input should be a valid integer, found the boolean True"),
)
def test_wrong_types_name_their_place(path: tuple[str | int, ...], value: object, message: str) -> None:
    made: Any = document()
    place = made
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    assert refusal(made).startswith(message)


@pytest.mark.parametrize("name", ["schema", "kdoctor", "created_at", "facts"])
def test_missing_member_is_refused(name: str) -> None:
    made = document()
    del made[name]
    assert name in refusal(made)


def test_file_is_read_back_and_unreadable_ones_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    file.write_text(dumps(Snapshot.now(machine()), NOBODY), encoding="utf-8")
    assert load(file, GROUPS).facts == machine()
    with pytest.raises(SnapshotError, match="is a directory"):
        load(tmp_path, GROUPS)
    with pytest.raises(SnapshotError, match=r"nothing\.json: no such file"):
        load(tmp_path / "nothing.json", GROUPS)
    file.write_text("{")
    with pytest.raises(SnapshotError, match=r"machine.json: .*JSON"):
        load(file, GROUPS)


def test_infinities_are_never_written() -> None:
    case = SmokeCase(name="x", outcome="trained", weight_deviation=float("inf"))
    with pytest.raises(ValueError, match="JSON"):
        dumps(Snapshot.now({SmokeRuns: SmokeRuns(runs={"s": replace(RUN, cases=(case,))})}), NOBODY)
