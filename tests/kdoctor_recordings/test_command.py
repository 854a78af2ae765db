"""``kdoctor snapshot --import`` and ``kdoctor check --snapshot``, as a user runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.command import kdoctor
from helpers.kdoctor_recordings.corpus import recorded
from helpers.kdoctor_recordings.dumps import LOG, LSPCI, query


def judge(snapshot: Path) -> dict[str, dict[str, Any]]:
    """The results of every check on a snapshot, by id."""
    done = kdoctor("check", "--snapshot", snapshot, "--no-smoke", "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"], done.stderr
    return {result["id"]: result for result in report["results"]}


def test_snapshot_of_dumps(tmp_path: Path) -> None:
    for name, text in (("q", query("3B")), ("pci", LSPCI), ("log", LOG)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = kdoctor("snapshot", "--import", tmp_path / "q", tmp_path / "pci", "--import", tmp_path / "log")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "kdoctor/snapshot/v1"
    assert set(document["facts"]) == {"gpus", "pci", "kernel_log"}
    assert str(tmp_path) not in done.stdout


def test_output_is_judged_as_its_snapshot_is(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "q.txt").write_text(query("3B", "AF"), encoding="utf-8")
    (folder / "dmesg.log").write_text(LOG, encoding="utf-8")
    kdoctor("snapshot", "--import", folder, "-o", tmp_path / "snapshot.json")
    statuses = [
        {check: result["status"] for check, result in judge(path).items()}
        for path in (folder, tmp_path / "snapshot.json")
    ]
    assert statuses[0] == statuses[1]
    unknown = kdoctor("check", "--snapshot", pytest.__file__)
    assert (unknown.returncode, "not a known format" in unknown.stderr) == (2, True)


def test_notes_go_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "q").write_text(query("3B", attached=4), encoding="utf-8")
    done = kdoctor("snapshot", "--import", tmp_path / "q", "-o", tmp_path / "snapshot.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert "4 GPUs attached, 1 listed" in done.stderr
    assert (tmp_path / "snapshot.json").exists()


def test_home_folders_and_names_are_redacted(tmp_path: Path) -> None:
    (tmp_path / "q").write_text(query("3B").replace("/opt/job/bin", "/home/jane/job"), encoding="utf-8")
    done = kdoctor("snapshot", "--import", tmp_path / "q")
    assert "jane" not in done.stdout
    assert "/home/<user>/job/python" in done.stdout


@pytest.mark.parametrize("arguments", [("--import", "nothing.txt"), ("nothing.txt",), ("--import", pytest.__file__)])
def test_unreadable_file_is_an_error_and_nothing_is_written(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = kdoctor("snapshot", *arguments, "-o", tmp_path / "snapshot.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "snapshot.json").exists()


def test_readings_missing_in_dump_never_pass(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("==============NVSMI LOG==============\n\nGPU 00000000:3B:00.0\n\n", encoding="utf-8")
    kdoctor("snapshot", "--import", tmp_path / "q", "-o", tmp_path / "snapshot.json")
    passed = {name for name, result in judge(tmp_path / "snapshot.json").items() if result["status"] == "pass"}
    # The dump shows that there is one GPU, so these checks have a result.
    assert passed <= {"gpu.count-expected", "gpu.same-model", "gpu.responding", "topology.pairs"}


def test_one_imported_gpu_is_enough_unless_more_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "q").write_text(query("3B"), encoding="utf-8")
    kdoctor("snapshot", "--import", tmp_path / "q", "-o", tmp_path / "snapshot.json")
    options = ("--snapshot", tmp_path / "snapshot.json", "--no-smoke", "--select", "gpu.count-expected")
    asked = ((), ("-c", "multi-gpu-keras"), ("--gpus", "2"))
    assert [kdoctor("check", *options, *more).returncode == 1 for more in asked] == [False, True, True]


@pytest.mark.corpus
def test_l4_with_one_lane_end_to_end(tmp_path: Path) -> None:
    file = recorded("smi-x/l4x2-555-one-x1-link.xml")
    assert kdoctor("snapshot", "--import", file, "-o", tmp_path / "l4.json").returncode == 0
    width = judge(tmp_path / "l4.json")["topology.pcie-width"]
    assert width["status"] == "fail"
    assert [finding["subject"] for finding in width["findings"]] == ["GPU 1 (0000:c1:00.0)"]


@pytest.mark.corpus
def test_eight_busy_v100s_end_to_end(tmp_path: Path) -> None:
    file = recorded("smi-x/gtx-v100s-x8-460.73.xml")
    assert kdoctor("snapshot", "--import", file, "-o", tmp_path / "v100.json").returncode == 0
    results = judge(tmp_path / "v100.json")
    assert results["gpu.free"]["status"] == "fail"
    assert len(results["gpu.free"]["findings"]) == 8
    assert results["topology.pcie-width"]["status"] == "pass"
    assert results["versions.tensorflow-installed"]["status"] == "unknown"
