import sys
from dataclasses import replace
from pathlib import Path

from helpers.cases import cases
from helpers.facts import package, packages, target
from helpers.facts.libraries import libraries, library
from helpers.locks import lock, node_facts
from helpers.rollbacks import PYTHON, planned, shell, with_packages
from kdoctor.facts import Package, Packages, Target
from kdoctor.rollback.installers import read_installation


@cases(
    ("pip", f"{PYTHON} -m pip install --no-deps h5py==3.14.0 keras==3.15.1", f"{PYTHON} -m pip uninstall -y jax"),
    (
        "uv",
        f"uv pip install --python {PYTHON} --no-deps h5py==3.14.0 keras==3.15.1",
        f"uv pip uninstall --python {PYTHON} jax",
    ),
)
def test_packages_that_drifted_are_restored_by_their_installer(installer: str, install: str, remove: str) -> None:
    now = with_packages(package("keras", "3.6.0"), package("jax", "0.6"), without="h5py", installer=installer)
    (step,) = planned(now).steps
    assert step.commands == (install, remove)
    assert step.restores == (
        "packages.h5py: nothing -> 3.14.0", "packages.jax: 0.6 -> nothing", "packages.keras: 3.6.0 -> 3.15.1"
    )  # fmt: skip
    assert not step.needs_root
    assert not step.needs_reboot


def test_conda_restores_its_packages_and_pip_its_own() -> None:
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
        ("conda install --yes --prefix /opt/conda/envs/job numpy=2.4.6",),
        ("/opt/conda/envs/job/bin/python -m pip install --no-deps keras==3.15.1",),
    ]


def test_conda_restores_name_version_and_build(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    conda = target(environment="conda", prefix=str(prefix), executable=f"{prefix}/bin/python")
    installed = tuple(replace(item, installer="conda") for item in packages().installed)
    before = replace(packages(*installed), conda=("cudnn=9.10.1=h1", "ml_dtypes=0.5.3=py311_0", "numpy=2.4.6=py311_1"))
    others = tuple(replace(item, version="0.5.1") if item.name == "ml-dtypes" else item for item in installed)
    now = replace(packages(*others), conda=("ml_dtypes=0.5.1=py311_0", "numpy=2.4.6=py311_1", "nccl=2.27.7=h2"))
    (step,) = planned(conda, now, to=lock(conda, before)).steps
    assert step.commands == (
        f"conda install --yes --prefix {prefix} --no-deps cudnn=9.10.1=h1 ml_dtypes=0.5.3=py311_0",
        f"conda remove --yes --prefix {prefix} --force nccl",
    )
    meta = prefix / "conda-meta"
    meta.mkdir(parents=True)
    for name in ("cudnn-9.10.1-h1", "ml_dtypes-0.5.3-py311_0", "numpy-2.4.6-py311_1", "nccl-tests-1.0-h3"):
        (meta / f"{name}.json").touch()
    assert [shell(command).returncode for command in step.verify] == [0, 0, 0]
    (meta / "nccl-2.27.7-h2.json").touch()
    (meta / "cudnn-9.10.1-h1.json").unlink()
    assert [shell(command).returncode for command in step.verify] == [1, 0, 1]


def test_environment_without_pip_is_restored_by_uv() -> None:
    now = replace(with_packages(package("keras", "3.6.0"), without="h5py"), has_pip=False)
    (step,) = planned(now).steps
    assert step.commands == (f"uv pip install --python {PYTHON} --no-deps h5py==3.14.0 keras==3.15.1",)


def test_path_with_a_space_is_quoted() -> None:
    now = with_packages(package("keras", "3.6.0"))
    (step,) = planned(now, target(executable="/opt/my job/bin/python"), to=lock()).steps
    assert step.commands[0].startswith("'/opt/my job/bin/python' -m pip install")


def test_another_python_gets_a_new_environment() -> None:
    (step,) = planned(target(version="3.12.1")).steps
    assert step.commands[0] == "python3.11 -m venv /opt/job-python3.11"
    assert step.commands[1].startswith("/opt/job-python3.11/bin/python -m pip install --no-deps h5py==3.14.0 ")
    (text,) = planned(target(version="3.11.9")).by_hand
    assert "3.11.7" in text
    assert "3.11.9" in text


def test_new_environment_is_created_by_the_same_tool_with_all_packages() -> None:
    changed = replace(with_packages(package("keras", "3.6.0"), installer="uv"), has_pip=False)
    before = lock(packages(*packages().installed, package("odd", None)))
    (step,) = planned(target(version="3.12.1"), changed, to=before).steps
    assert step.commands[0] == "uv venv --python 3.11.7 /opt/job-python3.11"
    assert step.commands[1].startswith("uv pip install --python /opt/job-python3.11/bin/python --no-deps h5py==3.14.0")
    assert "packages.keras: 3.6.0 -> 3.15.1" in step.restores
    assert "odd==" not in step.commands[1]  # its version was not recorded


def test_conda_restores_another_python_in_place() -> None:
    conda = target(environment="conda", prefix="/opt/c", executable="/opt/c/bin/python")
    before = lock(conda, replace(packages(), conda=("numpy=2.4.6=py311_1", "python=3.11.7=h0")))
    now = replace(packages(), conda=("numpy=2.4.6=py312_1", "python=3.12.1=h0"))
    plan = planned(replace(conda, version="3.12.1"), now, to=before)
    assert [step.commands for step in plan.steps] == [
        ("conda install --yes --prefix /opt/c --no-deps numpy=2.4.6=py311_1 python=3.11.7=h0",)
    ]
    assert plan.by_hand == ()


def test_conda_environment_that_is_gone_is_created_again() -> None:
    conda = target(environment="conda", prefix="/opt/c", executable="/opt/c/bin/python")
    before = lock(conda, replace(packages(), conda=("numpy=2.4.6=py311_1", "python=3.11.7=h0")))
    plan = planned(target(), packages(), to=before)
    (step,) = plan.steps
    assert step.commands[0] == "conda create --yes --prefix /opt/job-python3.11 numpy=2.4.6=py311_1 python=3.11.7=h0"
    assert " numpy==" not in step.commands[1]
    assert plan.by_hand == ()


def test_unknown_recorded_version_is_restored_manually() -> None:
    before = lock(packages(*packages().installed, package("odd", None)))
    plan = planned(packages(*packages().installed, package("odd", "2.0")), to=before)
    assert plan.steps == ()
    (text,) = plan.by_hand
    assert text.startswith("odd is 2.0")


def test_verification_finds_other_versions_and_leftovers() -> None:
    now = with_packages(package("keras", "3.6.0"), package("jax", "0.6"))
    (step,) = planned(now, target(executable=sys.executable)).steps
    wrong = shell(step.verify[0].replace('"3.15.1"', '"0.0.1"'))
    assert wrong.returncode == 1
    assert "not 0.0.1" in wrong.stderr
    without_pytest = step.verify[0].replace('{"keras": "3.15.1"}', "{}").replace('["jax"]', '["pytest"]')
    left = shell(without_pytest)
    assert (left.returncode, left.stderr) == (1, "pytest is still installed\n")
    assert shell(without_pytest.replace('["pytest"]', "[]")).returncode == 0


def test_environment_of_another_kind_is_restored_manually() -> None:
    plan = planned(target(environment="system"))
    assert plan.steps == ()
    assert [text.partition(" ")[0] for text in plan.by_hand] == ["python.environment"]


def test_interpreter_is_named_if_its_folder_is_unknown() -> None:
    (text,) = planned(target(version="3.11.9", prefix="")).by_hand
    assert PYTHON in text
    (text,) = planned(target(version="3.11.9", prefix="/opt/job")).by_hand
    assert PYTHON not in text


def test_package_of_pip_is_restored_next_to_those_of_conda() -> None:
    """h5py belongs to conda, by another name of the distribution; ml-dtypes was removed; keras belongs to pip."""
    conda = target(environment="conda", prefix="/opt/c", executable="/opt/c/bin/python")

    def owned(*changed: Package) -> Packages:
        return packages(*(replace(item, installer="pip" if item.name == "keras" else "conda") for item in changed))

    there = packages().installed
    before = replace(owned(*there), conda=("h5py-base=3.14.0=h1", "ml_dtypes=0.5.3=h1"))
    changed = {"h5py": "3.13.0", "keras": "3.6.0"}
    here = [replace(item, version=changed.get(item.name, item.version)) for item in there if item.name != "ml-dtypes"]
    plan = planned(conda, replace(owned(*here), conda=("h5py-base=3.13.0=h1",)), to=lock(conda, before))
    assert [step.commands for step in plan.steps] == [
        ("conda install --yes --prefix /opt/c --no-deps h5py-base=3.14.0=h1 ml_dtypes=0.5.3=h1",),
        ("/opt/c/bin/python -m pip install --no-deps keras==3.15.1",),
    ]


def test_environment_of_kdoctor_itself_is_not_changed() -> None:
    plan = planned(with_packages(package("keras", "3.6.0"), without="h5py"), target(stand_in=True))
    assert plan.steps == ()
    (text,) = plan.by_hand
    assert "2 facts" in text
    assert "--python" in text
    assert plan.again.endswith("--python PATH")
    assert planned(target(stand_in=True)).by_hand == ()


@cases(
    ("/opt/job/lib/libnccl.so.2", None, False), ("/usr/lib/libnccl.so.2", None, True), ("/usr/lib/x", "nvidia", False)
)
def test_library_is_of_the_system_if_it_is_outside_the_environment(
    path: str,
    package_name: str | None,
    outside: bool,  # noqa: FBT001
) -> None:
    facts = node_facts(libraries(library("nccl", path=path, package=package_name)))
    assert ("nccl" in read_installation(facts).outside) is outside
    del facts[Target]
    assert ("nccl" in read_installation(facts).outside) is (package_name is None)
