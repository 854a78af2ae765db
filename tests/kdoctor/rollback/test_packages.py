from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.facts import package, packages, target
from helpers.locks import lock
from helpers.rollbacks import PYTHON, planned, shell, with_packages


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


def test_conda_brings_another_python_back_in_place() -> None:
    conda = target(environment="conda", prefix="/opt/c", executable="/opt/c/bin/python")
    before = lock(conda, replace(packages(), conda=("numpy=2.4.6=py311_1", "python=3.11.7=h0")))
    now = replace(packages(), conda=("numpy=2.4.6=py312_1", "python=3.12.1=h0"))
    plan = planned(replace(conda, version="3.12.1"), now, to=before)
    assert [step.commands for step in plan.steps] == [
        ("conda install --yes --no-deps --prefix /opt/c numpy=2.4.6=py311_1 python=3.11.7=h0",)
    ]
    assert plan.by_hand == ()


def test_where_conda_is_gone_its_environment_is_made_anew() -> None:
    conda = target(environment="conda", prefix="/opt/c", executable="/opt/c/bin/python")
    before = lock(conda, replace(packages(), conda=("numpy=2.4.6=py311_1", "python=3.11.7=h0")))
    plan = planned(target(), packages(), to=before)
    (step,) = plan.steps
    assert step.commands[0] == "conda create --yes --prefix /opt/job-python3.11 numpy=2.4.6=py311_1 python=3.11.7=h0"
    assert " numpy==" not in step.commands[1]
    assert plan.by_hand == ()


def test_what_was_unknown_then_is_named() -> None:
    before = lock(packages(*packages().installed, package("odd", None)))
    plan = planned(packages(*packages().installed, package("odd", "2.0")), to=before)
    assert plan.by_hand == ("odd is 2.0, and the lock does not know which version it was",)


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
