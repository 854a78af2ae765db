import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet_of, healthy, write
from kdoctor.errors import UsageError
from kdoctor_fleet.read import Gathered, gather


def refuse(content: bytes) -> Any:
    raise UsageError("a snapshot")


def read(*places: str | Path, stdin: bytes = b"") -> Gathered:
    return gather(list(map(str, places)), refuse, BytesIO(stdin))


def unusable(gathered: Gathered) -> dict[str, str]:
    return {Path(item.source).name: item.reason for item in gathered.unread}


@pytest.mark.parametrize("between", ["", " ", "\n", "\n\n  ", "\nlogout\n", " motd\n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_reports_in_a_stream_need_no_separator(between: str, indent: int | None) -> None:
    names = [f"node{index}" for index in range(1, 5)]
    stream = between.join(json.dumps(healthy(name), indent=indent) for name in names)
    assert sorted(read("-", stdin=stream.encode()).nodes) == names


def test_files_folders_and_stdin_are_read(tmp_path: Path) -> None:
    one, two, three, four = fleet_of(4)
    folder = write([one, two], tmp_path / "reports")
    file = write([three], tmp_path / "other") / "node0003.json"
    found = read(folder, file, "-", stdin=json.dumps(four, indent=2).encode())
    assert sorted(found.nodes) == ["node0001", "node0002", "node0003", "node0004"]
    assert found.unread == []


BROKEN = {
    "empty.json": (b"", "empty"),
    "truncated.json": (json.dumps(healthy("x")).encode()[:5000], "truncated"),
    "other.json": (b'{"a": 1}', "not a report"),
    "text.txt": (b"Traceback (most recent call last):\n", "not a report"),
    "bytes.json": (b'{"schema": "kdoctor/report/v1", "kdoctor": "\xff"}', ""),
    "newer.json": (b'{"schema": "kdoctor/report/v2"}', "newer than 1"),
    "lint.json": (b'{"schema": "kdoctor/lint/v1"}', "of kind lint"),
    "lacking.json": (b'{"schema": "kdoctor/report/v1"}', "required"),
    "snapshot.json": (b'{"schema": "kdoctor/snapshot/v1"}', "a snapshot"),
    "list.json": (b'[{"schema": "kdoctor/report/v1"}]', ""),
    "deep.json": (b'{"schema": "kdoctor/report/v1", "x": ' + b"[" * 100_000, ""),
}


def test_files_that_are_no_reports_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write(fleet_of(2), tmp_path / "reports")
    for name, (content, _) in BROKEN.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe.json")
    (folder / "dangling.json").symlink_to("nowhere")
    found = read(folder)
    assert sorted(found.nodes) == ["node0001", "node0002"]
    reasons = unusable(found)
    assert set(reasons) == {*BROKEN, "pipe.json", "dangling.json"}
    for name, (_, reason) in BROKEN.items():
        assert reason in reasons[name], (name, reasons[name])
        assert len(reasons[name]) <= 200


@cases("../../etc/passwd", "a b", "<script>alert(1)</script>", "\x1b[31mred", "", "x" * 400, "node[1-9999999]")
def test_name_of_a_node_is_not_trusted(tmp_path: Path, name: str) -> None:
    bad = healthy("bad")
    folder = write([healthy("good"), bad], tmp_path / "reports")
    bad["node"]["name"] = name
    (folder / "bad.json").write_text(json.dumps(bad))
    found = read(folder)
    assert list(found.nodes) == ["good"]
    assert "\x1b" not in unusable(found)["bad.json"]


CAUSE = {
    "checks": ["gpu.free"], "severity": "error", "problems": [], "fix": "f", "commands": [],
    "rollback": {"kind": "nothing", "why": "w"},
}  # fmt: skip


@cases(
    {"verdict_reason": "x" * 40_001},
    {"causes": [CAUSE | {"checks": []}]},
    {"results": [{"id": f"gpu.x{n}", "title": "t", "status": "pass", "severity": "error"} for n in range(2_001)]},
    {
        "results": [
            {"id": "gpu.free", "title": "t", "status": status, "severity": "error"} for status in ("fail", "pass")
        ]
    },
    {"results": [{"id": "../x", "title": "t", "status": "pass", "severity": "error"}]},
    {"facts": {"packages": {f"p{index}": "1" for index in range(5_001)}}},
    {"facts": {f"s{index}": {} for index in range(51)}},
)
def test_sizes_are_bounded(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = write([healthy("good"), healthy("bad")], tmp_path / "reports")
    (folder / "bad.json").write_text(json.dumps(healthy("bad") | change))
    assert list(unusable(read(folder))) == ["bad.json"]


def test_tf_config_of_a_large_job_and_causes_are_read(tmp_path: Path) -> None:
    large = healthy("large") | {"causes": [CAUSE]}
    large["node"]["tf_config"] = json.dumps({"cluster": {"worker": [f"node{index:05}:2222" for index in range(5_000)]}})
    node = read(write([large], tmp_path / "reports")).nodes["large"]
    assert node.job is not None
    assert len(node.job.tasks) == 5_000
    assert node.causes[0].checks == ("gpu.free",)


def test_fix_of_a_node_is_not_offered(tmp_path: Path) -> None:
    bad = {"fix": "curl w | sh", "commands": ["curl x | sudo sh"], "look": ["curl y | sh"]}
    rollback = {"kind": "commands", "why": "undo", "commands": ["curl z | sh"]}
    folder = write([healthy("node") | {"causes": [CAUSE | bad | {"rollback": rollback}]}], tmp_path / "reports")
    assert "curl" not in repr(read(folder).nodes["node"].causes)


def test_file_of_a_hundred_megabytes_is_not_read(tmp_path: Path) -> None:
    folder = write([healthy("good")], tmp_path / "reports")
    with (folder / "large.json").open("wb") as large:
        large.truncate(100 * 2**20)
    assert "larger than 32 MiB" in unusable(read(folder))["large.json"]


@cases(
    ("2025-01-02T03:04:05+00:00", "2025-02-01T00:00:00+00:00"),
    ("2025-01-02T03:04:05+00:00", "2025-01-02T02:30:00-02:00"),
    ("2025-01-02T03:04:05Z", "2025-01-02T03:04:05.5+00:00"),
    ("yesterday", "2025-01-02T03:04:05+00:00"),
    ("9000-01-02T03:04:05+00:00", "2025-01-02T03:04:05+00:00"),  # of a clock that is ahead
    ("2025-01-02T03:04:05", "2025-01-02T03:04:05Z"),  # of no time zone
    ("2025-01-02T03:04:05Z", "2025-01-02T03:04:05+00:00"),  # of two at one time, the one that failed
)
def test_newest_report_of_a_node_counts(tmp_path: Path, older: str, newer: str) -> None:
    documents = [healthy("node1") | {"started_at": older}, healthy("node1") | {"started_at": newer, "verdict": "fail"}]
    for order in (documents, documents[::-1]):
        found = read("-", stdin="\n".join(map(json.dumps, order)).encode())
        assert found.nodes["node1"].verdict.value == "fail"
        assert found.replaced == {"node1": 1}


@cases(
    {"evidence": []},
    {"unjudged": [{"subject": "GPU 3", "reason": "not read"}]},
    {"findings": [{"finding": {"subject": "GPU 3"}, "hidden": False}]},
    {"findings": 3},
)
def test_pass_that_its_own_parts_contradict_is_unknown(tmp_path: Path, change: dict[str, Any]) -> None:
    good = {"id": "gpu.free", "title": "t", "status": "pass", "severity": "error", "evidence": [{"subject": "GPU 3"}]}
    hidden = {"findings": [{"finding": {"subject": "GPU 4"}, "hidden": True}]}
    for result, status in ((good, "pass"), (good | hidden, "pass"), (good | change, "unknown")):
        node = read("-", stdin=json.dumps(healthy("node1") | {"results": [result]}).encode()).nodes["node1"]
        assert [line.status.value for line in node.results] == [status]


@cases(
    {"counts": {"pass": 2}},
    {"exit_code": 1},
    {"exit_code": 3},
    {"causes": [CAUSE]},
    {"causes": [CAUSE | {"checks": ["gpu.free"], "explains": ["gpu.ecc-mode"]}]},
    {"scenarios": [{"id": "smoke.baseline", "kind": "baseline", "expect": ""}]},
    {"trainings": []},
)
def test_report_that_its_results_contradict_does_not_pass(change: dict[str, Any]) -> None:
    trained = {
        "id": "smoke.baseline",
        "title": "t",
        "status": "pass",
        "severity": "error",
        "scenario": "smoke.baseline",
    }
    document = healthy("node1")
    training = document["trainings"][0] | {"outcome": "raised"}
    document |= {"results": [trained | {"evidence": [{}]}], "counts": {"pass": 1, "fail": 0}, "trainings": [training]}
    for changes in ({}, change):
        node = read("-", stdin=json.dumps(document | changes).encode()).nodes["node1"]
        assert node.verdict.value == ("unknown" if changes else "pass")


def test_stream_with_other_text_is_read(tmp_path: Path) -> None:
    one, two = map(json.dumps, fleet_of(2))
    stream = f"Warning: Permanently added node1\n{one}\n{{garbage\n  ok\n{two}\n".encode()
    found = read("-", stdin=stream)
    assert sorted(found.nodes) == ["node0001", "node0002"]
    assert [item.source for item in found.unread] == ["standard input, document 2"]


def test_report_of_an_older_kdoctor_has_the_name_of_its_file(tmp_path: Path) -> None:
    old = healthy("x")
    for key in ("node", "facts", "causes", "categories", "trainings"):
        del old[key]
    (tmp_path / "node7.json").write_text(json.dumps(old))
    assert list(read(tmp_path).nodes) == ["node7"]
    with pytest.raises(UsageError, match="does not name its node"):
        read("-", stdin=json.dumps(old).encode())


@pytest.mark.parametrize("name", ["absent", "folder"])
def test_places_without_a_report_are_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=name):
        read(tmp_path / name)


def test_equal_parts_of_reports_are_stored_once(tmp_path: Path) -> None:
    first, second = read(write(fleet_of(2), tmp_path / "reports")).nodes.values()
    assert first.results is second.results
    assert first.sections["packages"] is second.sections["packages"]
