from __future__ import annotations

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
from kdoctor.facts import Environment, FactGroup, Gpus, Host, SmokeCase, SmokeRun, SmokeRuns, Unavailable
from kdoctor.snapshot.document import SCHEMA, Snapshot, SnapshotError, dumps, json_schema, load, loads, registry
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


GROUPS = registry(machine())


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(dumps(Snapshot.now(machine()), NOBODY)), **changes}


def refusal(data: str | bytes | Mapping[str, object]) -> str:
    with pytest.raises(SnapshotError) as error:
        loads(data if isinstance(data, (str, bytes)) else json.dumps(data), GROUPS)
    return str(error.value)


def test_facts_come_back_as_they_went() -> None:
    snapshot = Snapshot.now({**machine(), Gpus: Unavailable(unavailable="no driver")})
    assert loads(dumps(snapshot, NOBODY), GROUPS) == snapshot


def test_it_says_when_and_by_which_kdoctor() -> None:
    snapshot = Snapshot.now({})
    assert snapshot.kdoctor == kdoctor.__version__
    age = datetime.now(timezone.utc) - datetime.fromisoformat(snapshot.created_at)
    assert timedelta(seconds=-1) <= age < timedelta(minutes=5)


def test_the_same_facts_are_the_same_text() -> None:
    snapshot = Snapshot.now(machine())
    backwards = replace(snapshot, facts=dict(reversed(list(snapshot.facts.items()))))
    assert dumps(snapshot, NOBODY) == dumps(backwards, NOBODY)


def test_a_group_that_was_not_collected_is_absent() -> None:
    assert loads(dumps(Snapshot.now({}), NOBODY), GROUPS).facts == {}


def test_unknown_groups_are_left_out_with_a_note_and_unknown_fields_without() -> None:
    made = document()
    made["facts"]["weather"] = {"sunny": True}
    made["facts"]["host"]["colour"] = "green"
    snapshot = loads(json.dumps(made), GROUPS)
    assert snapshot.facts == machine()
    assert snapshot.notes == ("facts.weather was left out: no installed kdoctor or plug-in knows this group",)


def test_a_third_partys_group() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Weather(FactGroup):
        group: ClassVar[str] = "weather"
        sunny: bool

    snapshot = Snapshot.now({Weather: Weather(sunny=True)})
    assert loads(dumps(snapshot, NOBODY), {"weather": Weather}) == snapshot


def test_it_is_redacted_unless_there_is_nobody() -> None:
    facts: dict[type[FactGroup], FactGroup | Unavailable] = {
        Environment: Environment(variables={"TF_X": "/home/alice/x"})
    }
    text = dumps(Snapshot.now(facts), Redaction(home="/home/alice", user="alice"))
    assert "alice" not in text
    assert '"TF_X": "~/x"' in text
    assert str(Path.home() / "x") not in dumps(
        Snapshot.now({Environment: Environment(variables={"TF_X": str(Path.home() / "x")})})
    )


def test_the_schema_describes_what_is_written() -> None:
    schema = json_schema(GROUPS)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document())
    validator.validate({**document(), "facts": {"gpus": {"unavailable": "no driver"}}})
    assert not validator.is_valid({**document(), "facts": {"gpus": {"state": "splendid"}}})
    assert not validator.is_valid({**document(), "schema": "kdoctor/snapshot/v2"})


def test_a_truncated_file_says_where() -> None:
    text = dumps(Snapshot.now(machine()), NOBODY)
    message = refusal(text[: len(text) // 2])
    assert message.startswith("not JSON: ")
    assert "line " in message
    assert "column " in message
    assert refusal('{"schema": "kdoctor/snapsh').endswith("(it ends too early)")
    assert refusal('{"a": 1,').endswith("(it ends too early)")


def test_what_is_no_snapshot() -> None:
    assert refusal("") == "empty, so it is no snapshot"
    assert refusal("[]") == "not a snapshot: the document is an array, not an object"
    assert refusal("{}") == f"not a snapshot of kdoctor: it has no schema, not {SCHEMA!r}"
    assert refusal('{"schema": "other/v1"}') == f"not a snapshot of kdoctor: its schema is 'other/v1', not {SCHEMA!r}"
    assert refusal('{"schema": "kdoctor/report/v1"}').startswith("not a snapshot of kdoctor: ")
    assert refusal('{"schema": 1}').startswith("not a snapshot of kdoctor: its schema is 1")
    assert refusal("{schema: x}") == ("not JSON: Expecting property name enclosed in double quotes at line 1, column 2")
    assert refusal("[" * 100_000) == "not a snapshot: it is nested too deeply"


def test_a_newer_schema_is_refused() -> None:
    message = refusal(document(schema="kdoctor/snapshot/v2"))
    assert message == (
        "written by a newer kdoctor (schema kdoctor/snapshot/v2, this one reads kdoctor/snapshot/v1): "
        "upgrade keras-doctor"
    )


def test_bytes_that_are_no_text() -> None:
    assert refusal(b'{"schema": "\xff"}') == "not UTF-8: byte 12 cannot be read, so it is no snapshot"


def test_a_byte_order_mark_is_no_trouble() -> None:
    assert loads(b"\xef\xbb\xbf" + json.dumps(document()).encode(), GROUPS).facts == machine()


def test_numbers_that_are_none() -> None:
    assert refusal('{"schema": NaN}') == "not JSON: it holds NaN"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("facts",), [], "facts is an array, not an object"),
        (("created_at",), 5, "created_at is a number, not a text"),
        (("facts", "host"), 5, "facts.host: "),
        (("facts", "host"), {}, "facts.host.os: Field required"),
        (("facts", "host", "os"), 5, "facts.host.os: Input should be a valid string, not a number"),
        (
            ("facts", "gpus", "devices", 1, "index"),
            "x",
            "facts.gpus.devices[1].index: Input should be a valid integer, not a text",
        ),
        (("facts", "gpus", "state"), "splendid", "facts.gpus.state: Input should be 'ready'"),
        (("facts", "gpus", "count"), "8", "facts.gpus.count: Input should be a valid integer, not a text"),
        (("facts", "gpus", "count"), True, "facts.gpus.count: Input should be a valid integer, not true or false"),
    ],
)
def test_wrong_types_name_their_place(path: tuple[str | int, ...], value: object, message: str) -> None:
    made: Any = document()
    place = made
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    assert refusal(made).startswith(message)


@pytest.mark.parametrize("name", ["schema", "kdoctor", "created_at", "facts"])
def test_missing_members(name: str) -> None:
    made = document()
    del made[name]
    assert name in refusal(made)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    file.write_text(dumps(Snapshot.now(machine()), NOBODY), encoding="utf-8")
    assert load(file, GROUPS).facts == machine()
    with pytest.raises(SnapshotError, match=": a folder, not a snapshot"):
        load(tmp_path, GROUPS)
    with pytest.raises(SnapshotError, match=r"nothing\.json: No such file"):
        load(tmp_path / "nothing.json", GROUPS)
    file.write_text("{")
    with pytest.raises(SnapshotError, match=r"machine.json: not JSON"):
        load(file, GROUPS)


def test_infinities_are_never_written() -> None:
    case = SmokeCase(name="x", outcome="trained", weight_deviation=float("inf"))
    with pytest.raises(ValueError, match="JSON"):
        dumps(Snapshot.now({SmokeRuns: SmokeRuns(runs={"s": replace(RUN, cases=(case,))})}), NOBODY)
