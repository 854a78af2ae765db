from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.facts import environment, gpus, host, keras, kernel, package, packages, target
from helpers.locks import RECORDED, lock, node_facts
from kdoctor.facts import FactGroup, Package, Packages
from kdoctor.lock import Lock, recorded_facts
from kdoctor.rollback import RollbackPlan, as_json, as_script, as_text, how_made, plan_rollback

PYTHON = "/opt/job/bin/python"


def planned(*changed: FactGroup, to: Lock | None = None) -> RollbackPlan:
    facts = node_facts(*changed)
    return plan_rollback(to or lock(), recorded_facts(facts), how_made(facts), "job.lock.yaml")


def with_packages(*others: Package, without: str = "", installer: str = "pip") -> Packages:
    """The recorded packages but those, as they would stand after somebody installed others."""
    names = {item.name for item in others} | {without}
    kept = [item for item in packages().installed if item.name not in names]
    return packages(*(replace(item, installer=installer) for item in (*kept, *others)))


def test_where_nothing_drifted_there_is_nothing_to_do() -> None:
    plan = planned()
    assert plan == RollbackPlan(lock="job.lock.yaml", recorded=RECORDED)
    assert plan.is_empty
    assert "Nothing has drifted" in as_text(plan)


@pytest.mark.parametrize(
    ("installer", "install", "remove"),
    [
        (
            "pip",
            f"{PYTHON} -m pip install --no-deps h5py==3.14.0 keras==3.15.1",
            f"{PYTHON} -m pip uninstall --yes jax",
        ),
        (
            "uv",
            f"uv pip install --python {PYTHON} --no-deps h5py==3.14.0 keras==3.15.1",
            f"uv pip uninstall --python {PYTHON} jax",
        ),
    ],
)
def test_only_the_packages_that_drifted_come_back_the_way_they_came(installer: str, install: str, remove: str) -> None:
    now = with_packages(package("keras", "3.6.0"), package("jax", "0.6"), without="h5py", installer=installer)
    (step,) = planned(now).steps
    assert step.commands == (install, remove)
    assert step.restores == (
        "packages.h5py: nothing -> 3.14.0", "packages.jax: 0.6 -> nothing", "packages.keras: 3.6.0 -> 3.15.1"
    )  # fmt: skip
    assert not step.needs_root
    assert not step.needs_reboot


def test_a_conda_environment_is_rolled_back_by_conda_and_its_pip_packages_by_pip() -> None:
    conda = target(environment="conda", prefix="/opt/conda/envs/job", executable="/opt/conda/envs/job/bin/python")
    now = with_packages(
        replace(package("numpy", "2.5.0"), installer="conda"), replace(package("keras", "3.6.0"), installer="pip")
    )
    kept = {item.name: item for item in packages().installed}
    installed = [
        replace(package(name, {"numpy": "2.5.0", "keras": "3.6.0"}.get(name, item.version)),
                installer="conda" if name == "numpy" else "pip")
        for name, item in kept.items()
    ]  # fmt: skip
    assert now.installed
    steps = planned(conda, packages(*installed), to=lock(conda)).steps
    assert [step.commands for step in steps] == [
        ("conda install --yes --prefix /opt/conda/envs/job numpy==2.4.6".replace("==", "="),),
        ("/opt/conda/envs/job/bin/python -m pip install --no-deps keras==3.15.1",),
    ]


def test_a_path_with_a_space_is_quoted() -> None:
    now = with_packages(package("keras", "3.6.0"))
    (step,) = planned(now, target(executable="/opt/my job/bin/python"), to=lock()).steps
    assert step.commands[0].startswith("'/opt/my job/bin/python' -m pip install")


def test_variables_are_set_and_unset_as_they_were() -> None:
    (step,) = planned(environment(NCCL_P2P_DISABLE="1"), to=lock(environment(NCCL_DEBUG="WARN it's"))).steps
    assert step.commands == ("export NCCL_DEBUG='WARN it'\"'\"'s'", "unset NCCL_P2P_DISABLE")
    assert step.in_shell


def test_a_withheld_value_is_named_and_not_guessed() -> None:
    plan = planned(environment(), to=lock(environment(LD_LIBRARY_PATH="/opt/cuda/lib64")))
    assert plan.steps == ()
    assert plan.by_hand == (
        "LD_LIBRARY_PATH was set, and is not set: its value was withheld from the lock (--with-identifiers)",
    )


def test_a_backend_of_keras_json_comes_back_by_its_variable() -> None:
    (step,) = planned(keras(backend="jax", backend_from="keras.json")).steps
    assert step.commands == ("export KERAS_BACKEND=tensorflow",)


@pytest.mark.parametrize(
    ("os_release", "commands"),
    [
        (
            "Ubuntu 24.04.2 LTS",
            (
                "apt-cache madison nvidia-driver-580-open",
                "sudo apt-get install --allow-downgrades 'nvidia-driver-580-open=580.105.08*'",
            ),
        ),
        (
            "Rocky Linux 9.5 (Blue Onyx)",
            ("sudo dnf downgrade 'nvidia-driver*-580.105.08' kmod-nvidia-open-dkms-580.105.08",),
        ),
    ],
)
def test_the_driver_needs_root_and_a_reboot_and_comes_last(os_release: str, commands: tuple[str, ...]) -> None:
    drifted = (gpus(driver_version="575.57.08"), kernel(version="575.57.08"), with_packages(package("keras", "3.6.0")))
    system = host(os_release=os_release)
    first, last = planned(*drifted, system, to=lock(system)).steps
    assert first.title == "Bring back the recorded packages with pip."
    assert last.commands == (*commands, "sudo systemctl reboot")
    assert last.needs_root
    assert last.needs_reboot
    assert "driver.version: 575.57.08 -> 580.105.08" in last.restores
    assert "grep -F 580.105.08 /proc/driver/nvidia/version" in last.verify


@pytest.mark.parametrize(
    ("system", "words"),
    [
        (host(container="docker"), "it is the host's, and this is a container"),
        (host(os_release="Arch Linux"), "install 580.105.08 the way this system gets its driver"),
    ],
)
def test_a_driver_that_cannot_be_put_back_from_here_is_named(system: FactGroup, words: str) -> None:
    drifted = (gpus(driver_version="575.57.08"), kernel(version="575.57.08"))
    plan = planned(*drifted, system, to=lock(system))
    assert plan.steps == ()
    assert any(words in text for text in plan.by_hand)


def test_hardware_and_system_are_named_as_what_no_command_brings_back() -> None:
    plan = planned(gpus(7), host(kernel="6.14.0"))
    assert plan.steps == ()
    told = "\n".join(plan.by_hand)
    assert "no command brings a GPU back (gpus.compute-capability.9.0: 7 -> 8" in told
    assert "boot the recorded kernel, or restore the image of the machine (host.kernel: 6.14.0 -> 6.8" in told
    assert not plan.is_empty


def test_another_python_gets_an_environment_beside_this_one() -> None:
    (step,) = planned(target(version="3.12.1")).steps
    assert step.commands[0] == "python3.11 -m venv /opt/job-python3.11"
    assert step.commands[1].startswith("/opt/job-python3.11/bin/python -m pip install --no-deps h5py==3.14.0 ")
    assert planned(target(version="3.11.9")).by_hand[0].startswith("python.version was 3.11.7 and is 3.11.9")


def test_what_was_unknown_then_is_named() -> None:
    before = lock(packages(*packages().installed, package("odd", None)))
    plan = planned(packages(*packages().installed, package("odd", "2.0")), to=before)
    assert plan.by_hand == ("odd is 2.0, and the lock does not know which version it was",)


EVERYTHING = (
    with_packages(package("keras", "3.6.0"), package("jax", "0.6")),
    keras(version="3.6.0"),
    environment(NCCL_P2P_DISABLE="1"),
    gpus(7, driver_version="575.57.08"),
    kernel(version="575.57.08"),
)


def test_the_text_has_every_command_its_marks_and_what_cannot_be_undone() -> None:
    plan = planned(*EVERYTHING)
    text = as_text(plan)
    for step in plan.steps:
        for command in (*step.commands, *step.verify):
            assert f"   {command}\n" in text
    assert "(needs root, needs a reboot)" in text
    assert "Not undone by a command:\n  - the GPUs are others or fewer" in text
    assert "kdoctor itself has changed nothing" in text


def test_the_json_has_the_same() -> None:
    document = json.loads(as_json(planned(*EVERYTHING)))
    assert document["schema"] == "kdoctor/rollback/v1"
    assert [step["needs_reboot"] for step in document["steps"]] == [False, False, True]
    assert document["by_hand"]


def run(script: str, folder: Path, answers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "back.sh"
    path.write_text(script)
    return subprocess.run(
        ["bash", str(path), *arguments],
        check=False,
        capture_output=True,
        text=True,
        input=answers,
        cwd=folder,
        timeout=60,
    )


def test_the_script_is_bash_that_stops_at_errors(tmp_path: Path) -> None:
    script = as_script(planned(*EVERYTHING))
    assert "set -euo pipefail" in script
    done = subprocess.run(["bash", "-n"], check=False, capture_output=True, text=True, input=script)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_script_does_nothing_without_a_yes(tmp_path: Path) -> None:
    script = as_script(planned(with_packages(package("keras", "3.6.0")), target(executable="false")))
    for answers in ("n\n", "", "maybe\n"):
        done = run(script, tmp_path, answers)
        assert done.returncode == 1
        assert "Stopped before step 1." in done.stderr


def test_the_script_acts_verifies_and_ends_at_the_first_failure(tmp_path: Path) -> None:
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


def test_yes_never_answers_for_what_needs_root(tmp_path: Path) -> None:
    script = as_script(planned(gpus(driver_version="575.57.08"), kernel(version="575.57.08")))
    done = run(script, tmp_path, "", "--yes")
    assert done.returncode == 1
    assert "Stopped before step 1." in done.stderr


def test_the_verification_sees_versions_and_leftovers() -> None:
    now = with_packages(package("keras", "3.6.0"), package("jax", "0.6"))
    (step,) = planned(now, target(executable=sys.executable)).steps
    wrong = shell(step.verify[0].replace('"3.15.1"', '"0.0.1"'))
    assert wrong.returncode == 1
    assert "not 0.0.1" in wrong.stderr
    pytest_is_gone = step.verify[0].replace('{"keras": "3.15.1"}', "{}").replace('["jax"]', '["pytest"]')
    left = shell(pytest_is_gone)
    assert (left.returncode, left.stderr) == (1, "pytest is still installed\n")
    assert shell(pytest_is_gone.replace('["pytest"]', "[]")).returncode == 0


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)
