import json
import subprocess
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from helpers.command import captured
from helpers.facts import environment, gpus, host, keras, kernel, package, target
from helpers.locks import lock
from helpers.rollbacks import planned, with_packages
from kdoctor.rollback.render import as_script, as_text


def test_script_starts_no_container_and_asks_to_continue(tmp_path: Path) -> None:
    before, now = (host(container="docker", image=name, image_from="KDOCTOR_IMAGE") for name in ("train:7", "train:8"))
    script = as_script(planned(now, to=lock(before)))
    assert "\ndocker pull" not in script
    done = run(script, tmp_path, "y\n")
    assert done.returncode == 0
    assert "  docker pull train:7" in done.stderr
    assert run(script, tmp_path, "n\n").returncode == 1


EVERYTHING = (
    with_packages(package("keras", "3.6.0"), package("jax", "0.6")),
    keras(version="3.6.0"),
    environment(NCCL_P2P_DISABLE="1"),
    gpus(7, driver_version="575.57.08"),
    kernel(version="575.57.08"),
)


def test_text_has_every_command_on_a_line_to_paste(screen: SnapshotAssertion) -> None:
    plan = planned(*EVERYTHING)
    text = as_text(plan)
    for step in plan.steps:
        for command in (*step.commands, *step.verify):
            assert f"   {command}\n" in text
    assert text.endswith(f"   kdoctor check --checklist job.yaml --python {target().executable}\n")
    assert text == screen


def test_new_environment_is_not_checked_with_the_old_interpreter() -> None:
    plan = planned(target(version="3.12.1"))
    assert plan.again == "kdoctor check --checklist job.yaml"


def test_json_has_every_step() -> None:
    document = json.loads(planned(*EVERYTHING).to_json())
    assert document["schema"] == "kdoctor/rollback/v1"
    assert [step["needs_reboot"] for step in document["steps"]] == [False, False, True]
    assert document["by_hand"]


def run(script: str, folder: Path, answers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "back.sh"
    path.write_text(script)
    return captured(["bash", str(path), *arguments], input=answers, cwd=folder, timeout=60)


def test_script_is_bash_that_stops_at_errors(screen: SnapshotAssertion) -> None:
    script = as_script(planned(*EVERYTHING))
    assert script == screen
    assert "set -euo pipefail" in script
    done = captured(["bash", "-n"], input=script)
    assert (done.returncode, done.stderr) == (0, "")


def test_script_does_nothing_without_a_yes(tmp_path: Path) -> None:
    script = as_script(planned(with_packages(package("keras", "3.6.0")), target(executable="false")))
    for answers in ("n\n", "", "maybe\n"):
        done = run(script, tmp_path, answers)
        assert done.returncode == 1
        assert "step 1" in done.stderr


def test_script_acts_and_verifies_and_ends_at_the_first_failure(tmp_path: Path) -> None:
    recorder = tmp_path / "python"
    recorder.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\ncase "$1" in -c) exit ${{FAIL:-0}};; esac\n')
    recorder.chmod(0o755)
    changed = (with_packages(package("keras", "3.6.0")), target(executable=str(recorder)), environment())
    script = as_script(planned(*changed))
    done = run(script, tmp_path, "y\ny\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text().splitlines()[0] == "-m pip install --no-deps keras==3.15.1"
    assert (tmp_path / "kdoctor-rollback.env").read_text() == "export NCCL_DEBUG=WARN\n"
    failing = run(script.replace("set -euo pipefail", "set -euo pipefail\nexport FAIL=3"), tmp_path, "y\ny\n")
    assert failing.returncode == 3
    assert "Done." not in failing.stderr


def test_option_yes_does_not_confirm_steps_that_need_root(tmp_path: Path) -> None:
    script = as_script(planned(gpus(driver_version="575.57.08"), kernel(version="575.57.08")))
    done = run(script, tmp_path, "", "--yes")
    assert done.returncode == 1
    assert "step 1" in done.stderr
