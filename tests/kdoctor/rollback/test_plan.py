from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.facts import environment, gpus, host, keras, kernel, package, packages, target
from helpers.facts.libraries import libraries, library
from helpers.locks import RECORDED, lock, node_facts
from kdoctor.facts import FactGroup, Libraries, Package, Packages
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


def test_what_conda_recorded_is_exact(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    conda = target(environment="conda", prefix=str(prefix), executable=f"{prefix}/bin/python")
    installed = tuple(replace(item, installer="conda") for item in packages().installed)
    before = replace(packages(*installed), conda=("cudnn=9.10.1=h1", "ml_dtypes=0.5.3=py311_0", "numpy=2.4.6=py311_1"))
    others = tuple(replace(item, version="0.5.1") if item.name == "ml-dtypes" else item for item in installed)
    now = replace(packages(*others), conda=("ml_dtypes=0.5.1=py311_0", "numpy=2.4.6=py311_1", "nccl=2.27.7=h2"))
    (step,) = planned(conda, now, to=lock(conda, before)).steps
    assert step.commands == (
        f"conda install --yes --no-deps --prefix {prefix} cudnn=9.10.1=h1 ml_dtypes=0.5.3=py311_0",
        f"conda remove --yes --force --prefix {prefix} nccl",
    )
    meta = prefix / "conda-meta"
    meta.mkdir(parents=True)
    for name in ("cudnn-9.10.1-h1", "ml_dtypes-0.5.3-py311_0", "numpy-2.4.6-py311_1", "nccl-tests-1.0-h3"):
        (meta / f"{name}.json").touch()
    assert [shell(command).returncode for command in step.verify] == [0, 0, 0]
    (meta / "nccl-2.27.7-h2.json").touch()
    (meta / "cudnn-9.10.1-h1.json").unlink()
    assert [shell(command).returncode for command in step.verify] == [1, 0, 1]


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
                (
                    "printf '%s\\n' 'Package: *nvidia*' 'Pin: version 580.105.08*' 'Pin-Priority: 1001' "
                    "| sudo tee /etc/apt/preferences.d/kdoctor-rollback"
                ),
                "sudo apt-get update",
                "sudo apt-get install --allow-downgrades nvidia-driver-580-open",
            ),
        ),
        (
            "Rocky Linux 9.5 (Blue Onyx)",
            ("sudo dnf install 'nvidia-driver*-580.105.08*' 'kmod-nvidia-open-dkms-580.105.08*'",),
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


def test_dnf_goes_down_where_a_newer_driver_came() -> None:
    system = host(os_release="Rocky Linux 9.5 (Blue Onyx)")
    (step,) = planned(gpus(driver_version="590.44.01"), kernel(version="590.44.01"), system, to=lock(system)).steps
    assert step.commands[0].startswith("sudo dnf downgrade 'nvidia-driver*-580.105.08*' ")


IMAGE = "registry.example/train:7"


@pytest.mark.parametrize(
    ("engine", "command"),
    [
        ("docker", f"docker pull {IMAGE}"),
        ("podman", f"podman pull {IMAGE}"),
        ("kubernetes", f"kubectl set image '<kind>/<name>' '<container>'={IMAGE}"),
        ("apptainer", f"apptainer exec --nv {IMAGE} '<command>'"),
        ("container", f"docker pull {IMAGE}"),
    ],
)
def test_the_recorded_image_comes_first_and_is_started_elsewhere(engine: str, command: str) -> None:
    before = host(container=engine, image=IMAGE, image_from="KDOCTOR_IMAGE")
    now = host(container=engine, image="registry.example/train:8", image_from="KDOCTOR_IMAGE")
    plan = planned(now, with_packages(package("keras", "3.6.0")), to=lock(before))
    first, second = plan.steps
    assert (first.commands, first.elsewhere) == ((command,), "where containers are started")
    assert second.restores == ("packages.keras: 3.6.0 -> 3.15.1",)
    assert plan.by_hand == ()
    assert "(where containers are started)" in as_text(plan)


def test_the_script_does_not_start_containers_and_asks_whether_to_go_on(tmp_path: Path) -> None:
    before, now = (host(container="docker", image=name, image_from="KDOCTOR_IMAGE") for name in ("train:7", "train:8"))
    script = as_script(planned(now, to=lock(before)))
    assert "\ndocker pull" not in script
    done = run(script, tmp_path, "y\n")
    assert done.returncode == 0
    assert "  docker pull train:7" in done.stderr
    assert run(script, tmp_path, "n\n").returncode == 1


def test_an_image_that_is_not_known_any_more_is_gone_back_to_and_one_that_was_not_is_no_state() -> None:
    known, unknown = host(container="docker", image=IMAGE, image_from="KDOCTOR_IMAGE"), host(container="docker")
    assert planned(unknown, to=lock(known)).steps[0].restores == (f"host.image: nothing -> {IMAGE}",)
    assert planned(known, to=lock(unknown)).is_empty


def test_settings_of_keras_json_come_back(tmp_path: Path) -> None:
    now = keras(settings={"floatx": "float16", "epsilon": "1e-05", "image_data_format": "channels_last"})
    (step,) = planned(now).steps
    (tmp_path / "keras.json").write_text('{"floatx": "float16", "epsilon": 1e-05, "backend": "tensorflow"}')
    home = f"export KERAS_HOME={tmp_path}; "
    assert shell(home + step.verify[0]).returncode == 1
    assert shell(home + step.commands[0]).returncode == 0
    assert shell(home + step.verify[0]).returncode == 0
    assert json.loads((tmp_path / "keras.json").read_text()) == {
        "floatx": "float32", "epsilon": 1e-07, "backend": "tensorflow"
    }  # fmt: skip


def test_variables_that_name_one_job_are_left_alone() -> None:
    before = lock(environment())
    facts = node_facts(environment(SLURM_JOB_ID="7", VIRTUAL_ENV="/x", NCCL_DEBUG="INFO"))
    plan = plan_rollback(before, recorded_facts(facts, identifiers=True), how_made(facts), "job.lock.yaml")
    assert [command for step in plan.steps for command in step.commands] == ["unset NCCL_DEBUG"]


def system_libraries(version: str | None) -> Libraries:
    """cuDNN of the system, found by the loader's cache."""
    gone = {} if version else {"status": "missing", "path": None}
    values = {"package": None, "package_version": None, "path": "/usr/lib/x86_64-linux-gnu/libcudnn.so.9", **gone}
    return libraries(library("cudnn", version=version, found_by="ld.so.cache" if version else None, **values))


@pytest.mark.parametrize("now", ["9.1.0", None])
@pytest.mark.parametrize(
    ("os_release", "command", "verify"),
    [
        ("Ubuntu 24.04.2 LTS", "sudo apt-get install --allow-downgrades 'libcudnn9-cuda-12=9.24.0*'",
         "dpkg-query -W libcudnn9-cuda-12 | grep -F 9.24.0"),
        ("Rocky Linux 9.5 (Blue Onyx)", "sudo dnf install --allowerasing 'libcudnn9-cuda-12-9.24.0*'",
         "rpm -q libcudnn9-cuda-12 | grep -F 9.24.0"),
    ],
)  # fmt: skip
def test_libraries_of_the_system_come_back_by_its_package_manager(
    os_release: str, command: str, verify: str, now: str | None
) -> None:
    system = host(os_release=os_release)
    (step,) = planned(system_libraries(now), system, to=lock(system_libraries("9.24.0"), system)).steps
    assert (step.commands, step.verify, step.needs_root) == ((command,), (verify,), True)


def test_libraries_of_wheels_come_back_with_them_and_others_are_named() -> None:
    wheels = libraries(library("cudnn", version="9.1.0", package_version="9.1.0.70"))
    both = lock(libraries(), packages(*packages().installed, package("nvidia-cudnn-cu12", "9.24.0.43")))
    now = packages(*packages().installed, package("nvidia-cudnn-cu12", "9.1.0.70"))
    (step,) = planned(wheels, now, to=both).steps
    assert step.title == "Bring back the recorded packages with pip."
    lonely = planned(wheels, to=lock(libraries()))
    assert lonely.steps == ()
    assert lonely.by_hand[0].startswith("library libraries.cudnn: 9.1.0 -> 9.24.0: it belongs to no package")


def test_a_toolkits_library_bears_the_toolkits_release() -> None:
    system = host(os_release="Ubuntu 24.04.2 LTS")

    def of_system(version: str) -> Libraries:
        return libraries(library("cufft", version=version, package=None, path="/usr/local/cuda/lib64/libcufft.so.11"))

    (step,) = planned(of_system("11.2.0"), system, to=lock(of_system("11.4.1"), system)).steps
    assert step.commands == ("sudo apt-get install --allow-downgrades 'libcufft-12-9=11.4.1*'",)


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


def test_a_new_environment_is_made_by_the_tool_that_made_the_old_one_and_brings_all_packages() -> None:
    changed = replace(with_packages(package("keras", "3.6.0"), installer="uv"), has_pip=False)
    (step,) = planned(target(version="3.12.1"), changed).steps
    assert step.commands[0] == "uv venv --python 3.11.7 /opt/job-python3.11"
    assert step.commands[1].startswith("uv pip install --python /opt/job-python3.11/bin/python --no-deps h5py==3.14.0")
    assert "packages.keras: 3.6.0 -> 3.15.1" in step.restores
    conda = target(environment="conda", prefix="/opt/c", executable="/opt/c/bin/python")
    before = lock(conda, replace(packages(), conda=("numpy=2.4.6=py311_1", "python=3.11.7=h0")))
    (step,) = planned(replace(conda, version="3.12.1"), to=before).steps
    assert step.commands[0] == "conda create --yes --prefix /opt/c-python3.11 numpy=2.4.6=py311_1 python=3.11.7=h0"
    assert "numpy" not in step.commands[1]


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
