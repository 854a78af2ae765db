import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from helpers.cases import cases
from helpers.checks import ALL
from helpers.command import kdoctor
from helpers.kdoctor_fleet.fleets import SNAPSHOT, asked, fact, fleet_of, healthy, write
from kdoctor.cli.schema import document_schema
from kdoctor.errors import UsageError
from kdoctor_fleet.formats import FORMATS

ODD = {2: [fact("libraries", "cudnn", "9.1.0")]}


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """The reports of four nodes, of which the second differs."""
    return write(fleet_of(4, ODD), tmp_path / "reports")


def test_command_line_merges_a_folder(reports: Path) -> None:
    done = kdoctor("fleet", "merge", reports, "--lists", ".", "--min-healthy", "3", cwd=reports.parent)
    assert done.returncode == 0, done.stderr
    assert "node0002: cuDNN 9.1.0" in done.stdout
    assert (reports.parent / "passing.txt").read_text().split() == ["node0001", "node0003", "node0004"]
    assert (reports.parent / "failing.txt").read_text().split() == ["node0002"]


def test_command_line_reports_errors_without_a_traceback(tmp_path: Path) -> None:
    done = kdoctor("fleet", "merge", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("kdoctor: no report of a node")
    assert "Traceback" not in done.stderr


def test_every_format_is_written(reports: Path, tmp_path: Path) -> None:
    outputs = [part for name in FORMATS for part in ("-o", f"{name}={tmp_path / name}")]
    asked("merge", reports, *outputs, code=1)
    for name in FORMATS:
        assert "node0002" in (tmp_path / name).read_text() or name == "prometheus"


def test_fix_comes_from_this_kdoctor_and_not_from_a_node(tmp_path: Path) -> None:
    checks = ("gpu.free", "zz.newer")
    reports = fleet_of(2)
    line = {"title": "t", "status": "fail", "severity": "error"}
    reports[1]["results"] = [line | {"id": check} for check in checks]
    reports[1]["causes"] = [
        {
            "checks": [check], "severity": "error", "fix": "curl x | sh", "commands": ["curl y | sh"],
            "problems": [{"check": check, "subjects": [], "headline": "h"}], "look": ["curl z | sh"],
            "rollback": {"kind": "nothing", "why": "curl v | sh"},
        }
        for check in checks
    ]  # fmt: skip
    folder = write(reports, tmp_path / "reports")
    for name in FORMATS:
        assert "curl" not in asked("merge", folder, "--format", name, "-v", code=2 if name == "nagios" else 1), name
    causes = {cause["checks"][0]: cause for cause in json.loads(asked("merge", folder, "-f", "json", code=1))["causes"]}
    assert ALL["gpu.free"].remedy[1:] in causes["gpu.free"]["fix"]
    assert [causes[check][key] for check in checks for key in ("commands", "look")] == [[]] * 4


@pytest.mark.parametrize("more", [[], ["--lists", "here"]])
def test_command_that_writes_the_lists_names_one_folder(more: list[str], reports: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    done = kdoctor("fleet", "merge", "reports", "-f", "json", "--engine", "hosts", *more, cwd=tmp_path)
    document = json.loads(done.stdout)
    (command,) = next(found["leave_out"] for found in document["exclusions"] if found["engine"] == "hosts")
    words = shlex.split(command)
    assert words.count("--lists") == 1
    (tmp_path / "here" / "passing.txt").unlink(missing_ok=True)
    kdoctor(*words[words.index("fleet") :], cwd=tmp_path)
    assert (tmp_path / ("here" if more else "") / "passing.txt").read_text().split() == document["passing"]


def test_stream_is_read() -> None:
    text = "\n".join(map(json.dumps, fleet_of(3)))
    document = json.loads(asked("merge", "-", "-f", "json", stdin=text))
    assert document["passing"] == ["node0001", "node0002", "node0003"]


def test_documents_match_their_schemas(reports: Path, tmp_path: Path) -> None:
    asked("merge", reports, "-q", "-o", f"json={tmp_path / 'old'}", code=1)
    (reports / "node0002.json").write_text(json.dumps(healthy("node0002", 1, 4)))
    asked("merge", reports, "-q", "-o", f"json={tmp_path / 'new'}")
    printed = {
        "fleet": (tmp_path / "old").read_text(),
        "fleet-diff": asked("diff", tmp_path / "old", tmp_path / "new", "-f", "json"),
    }
    for name, text in printed.items():
        schema = document_schema(name)
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(json.loads(text))
    assert json.loads(printed["fleet-diff"])["problems"][0]["went"] == ["node0002"]


def test_snapshots_are_judged_with_reports(reports: Path) -> None:
    (reports / "node0002.json").unlink()
    shutil.copy(SNAPSHOT, reports / "a.json")
    document = json.loads(asked("merge", reports, "--node-checklist", "cpu-smoke", "-f", "json", code=3))
    assert [node["name"] for node in document["nodes"]] == ["node0001", "node0003", "node0004"]
    shutil.copy(SNAPSHOT, reports / "b.json")
    snapshot = json.loads(SNAPSHOT.read_text())
    snapshot["facts"]["node"] |= {"name": "node0002", "rank": 1}
    (reports / "b.json").write_text(json.dumps(snapshot))
    document = json.loads(asked("merge", reports, "-f", "json", code=3))
    states = {node["name"]: node["state"] for node in document["nodes"]}
    assert states["node0002"] == "unknown"  # its trainings were not recorded


def test_expected_nodes_come_from_the_option_a_file_or_the_allocation(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("node[0001-0005]\n")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[0001-0006]")
    for arguments, number in ((["--expect", "node[0001-0007]"], 7), (["--expect-file", str(file)], 5), ([], 6)):
        document = json.loads(asked("merge", reports, *arguments, "-f", "json", "--min-healthy", "3"))
        assert len(document["nodes"]) == number
    monkeypatch.setenv("SLURM_JOB_NODELIST", "other[1-2]")
    assert len(json.loads(asked("merge", reports, "-f", "json", code=1))["nodes"]) == 4


@cases(
    ["--expect", "node[1-"],
    ["--expect", "@all"],
    ["--expect", "n1", "--expect-file", "x"],
    ["--expect-file", "absent.txt"],
    ["--min-healthy", "110%"],
    ["--engine", "lsf"],
    ["--format", "github"],
    ["--lists", "absent/folder"],
    ["--checklist", "absent"],
)
def test_wrong_options_are_usage_errors(reports: Path, arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        asked("merge", reports, *arguments)


def test_check_that_no_node_was_asked_is_missed(tmp_path: Path) -> None:
    def leave_out(document: dict[str, Any]) -> None:
        kept = [line for line in document["results"] if line["id"] != "gpu.ecc-errors"]
        document |= {"results": kept, "counts": document["counts"] | {"pass": document["counts"]["pass"] - 1}}

    asked("merge", write(fleet_of(2), tmp_path / "all"))
    lacking = write(fleet_of(2, {1: [leave_out], 2: [leave_out]}), tmp_path / "lacking")
    nodes = json.loads(asked("merge", lacking, "-f", "json", code=3))["nodes"]
    assert all(node["reason"].startswith("gpu.ecc-errors not in its report") for node in nodes)


def test_own_checklist_changes_severities(reports: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "schema: kdoctor/checklist/v1\nname: own\nversion: 1\nowner: ada\nextends: fleet\n"
        "checks: [{id: cluster.cuda-libraries, severity: warning}]\n"
    )
    document = json.loads(asked("merge", reports, "--checklist", own, "-f", "json"))
    assert [cause["severity"] for cause in document["causes"]] == ["warning"]


@pytest.mark.parametrize("command", ["manifest --image i", "run -w a"])
def test_options_of_check_belong_after_the_dashes(command: str) -> None:
    assert "to pass it on: -- --no-smoke" in kdoctor("fleet", *command.split(), "--no-smoke").stderr


def test_help_lists_the_commands() -> None:
    found: Any = asked("--help")
    assert "merge" in found
    assert "diff" in found
