import json
from pathlib import Path

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.command import ON_PATH, kdoctor, make_target
from kdoctor.commands import again
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.report.formats import render

LOG = """\
keras==3.15.1
tensorflow==2.21.0
2026-03-02 08:00:11.514032: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.
Epoch 1/3
[rank1]: tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:
[rank1]: OOM when allocating tensor with shape[64,512,56,56] and type float on /job:localhost/replica:0/device:GPU:0
[rank0]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
srun: error: gpu003: task 1: Exited with exit code 1
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text(LOG)
    return "train.log"


def test_cause_is_one_screen(log: str, screen: SnapshotAssertion) -> None:
    done = kdoctor("diagnose", log, PATH=ON_PATH)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) <= 30
    assert done.stdout == screen


def test_json_fits_its_schema_and_files_are_written(log: str, tmp_path: Path) -> None:
    done = kdoctor("diagnose", log, "-f", "json", "-o", "html=report.html", "-o", "markdown=report.md")
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(kdoctor("schema", "diagnosis").stdout))
    assert document["causes"][0]["id"] == "gpu_out_of_memory"
    assert document["versions"] == {"keras": "3.15.1", "tensorflow": "2.21.0"}
    assert "nvidia-smi" in (tmp_path / "report.html").read_text()
    assert "gpu.free" in (tmp_path / "report.md").read_text()


def test_unknown_failure_exits_with_1(log: str, tmp_path: Path, screen: SnapshotAssertion) -> None:
    (tmp_path / log).write_text("Epoch 1/2\nTraceback (most recent call last):\nKeyError: 'label'\n")
    done = kdoctor("diagnose", log)
    assert done.returncode == 1
    assert done.stdout == screen


@pytest.mark.parametrize(("tensorflow", "status"), [(None, "fail"), ("", "pass")])
def test_cause_is_confirmed_on_this_machine(tensorflow: str | None, status: str, log: str, tmp_path: Path) -> None:
    (tmp_path / log).write_text("ModuleNotFoundError: No module named 'addons'\n")
    assert "with the module addons" in kdoctor("diagnose", log).stdout
    (tmp_path / log).write_text("ModuleNotFoundError: No module named 'tensorflow'\n")
    target = make_target(tmp_path / "job", tensorflow=tensorflow)
    done = kdoctor("diagnose", log, "--check", "--python", target, "-f", "json", "-o", "markdown=report.md")
    found = {item["check"]: item["status"] for item in json.loads(done.stdout)["confirmations"]}
    assert found["versions.tensorflow-installed"] == status
    confirmed = "Confirmed on this machine" in (tmp_path / "report.md").read_text()
    assert confirmed == (status == "fail")
    (tmp_path / log).write_text("KeyError: 'label'\n")
    assert "--check ran nothing" in kdoctor("diagnose", log, "--check", "--python", target).stdout


def test_fix_is_run_by_root_without_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis = diagnose_text("step 3\nKilled\n", {}, {})
    assert "sudo dmesg" in render(diagnosis, "terminal")
    monkeypatch.setattr(again, "root_without_sudo", True)
    assert "sudo" not in render(diagnosis, "terminal")


def test_output_of_a_tool_is_not_taken_for_a_log(log: str, tmp_path: Path) -> None:
    pytest.importorskip("kdoctor_recordings")
    shown = "GPU 0: NVIDIA L4 (UUID: GPU-5a1c0b2e-0000-4000-8000-000000000001)\n"
    (tmp_path / log).write_text(shown)
    assert f"kdoctor check --snapshot {log}" in kdoctor("diagnose", log).stderr
    for job in ("KeyError: 'label'\n", "step 1\n" * (1 << 20)):
        (tmp_path / log).write_text(shown + job)
        assert "--snapshot" not in kdoctor("diagnose", log).stderr
    judged = json.loads(kdoctor("check", "--snapshot", "-", "--no-smoke", "-f", "json", stdin=shown).stdout)
    assert (judged["target"], judged["command"]) == ("recorded in stdin", "")  # a pipe cannot be read again
