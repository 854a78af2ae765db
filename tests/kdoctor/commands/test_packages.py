from dataclasses import replace

import pytest
from packaging.specifiers import SpecifierSet

from helpers.cases import cases
from helpers.facts import PYTHON, package, packages, target
from kdoctor.commands.packages import Installer, install, installer_of, narrowest, restore, uninstall


def test_pip_of_the_target_is_used_unless_it_is_known_to_be_absent() -> None:
    for has_pip in (True, None):
        found = packages(package("numpy", "2.0"), has_pip=has_pip)
        assert install(target(), found, "numpy<2", "keras") == f"{PYTHON} -m pip install 'numpy<2' keras"
        assert uninstall(target(), found, "numpy") == f"{PYTHON} -m pip uninstall -y numpy"
    assert install(target(), None, "keras") == f"{PYTHON} -m pip install keras"


def test_uv_is_used_for_a_target_without_pip() -> None:
    found = packages(package("numpy", "2.0"), has_pip=False)
    assert install(target(), found, "keras") == f"uv pip install --python {PYTHON} keras"
    assert uninstall(target(), found, "keras") == f"uv pip uninstall --python {PYTHON} keras"


def test_without_uv_python_installs_the_pip_that_is_missing() -> None:
    found = replace(packages(replace(package("numpy", "2.0"), installer="uv")), has_uv=False)
    assert install(target(), found, "numpy") == f"{PYTHON} -m pip install numpy"
    bare = replace(found, has_pip=False)
    assert install(target(), bare, "numpy") == f"{PYTHON} -m ensurepip; {PYTHON} -m pip install numpy"


def test_python_of_a_distribution_gets_the_option_that_pip_asks_for() -> None:
    found, system = packages(package("numpy", "2.0")), target(externally_managed=True)
    option = "--break-system-packages"
    assert install(system, found, "numpy<2") == f"{PYTHON} -m pip install {option} 'numpy<2'"
    assert uninstall(system, found, "numpy") == f"{PYTHON} -m pip uninstall -y {option} numpy"


def test_path_with_spaces_is_quoted() -> None:
    assert install(target(executable="/my env/python"), None, "keras") == "'/my env/python' -m pip install keras"


def test_restore_returns_to_recorded_versions_and_absences() -> None:
    rollback = restore(target(), packages(package("numpy", "2.0")), "numpy", "keras")
    assert rollback.commands == (f"{PYTHON} -m pip install numpy==2.0", f"{PYTHON} -m pip uninstall -y keras")
    assert rollback.why.endswith(": numpy==2.0, no keras")


def test_distribution_without_a_version_cannot_be_restored() -> None:
    rollback = restore(target(), packages(package("numpy", None)), "numpy")
    assert rollback.kind == "irreversible"
    assert "numpy" in rollback.why


@cases(  # conda-forge: CUDA builds of TensorFlow have a build string, and cuDNN has three numbers
    ("tensorflow[and-cuda]==2.19.1", "'tensorflow=2.19.1=cuda*'"),
    ("tensorflow[and-cuda]", "'tensorflow=*=cuda*'"),
    ("nvidia-cudnn-cu12==9.10.2.21", "cudnn==9.10.2"),
    ("nvidia-cuda-nvcc-cu12", "cuda-nvcc"),
    ("numpy<2", "'numpy<2'"),
    ("tf-keras~=2.19.0", "'tf-keras~=2.19.0'"),
)
def test_conda_installs_what_it_owns(requirement: str, spec: str) -> None:
    names = ("tensorflow", "numpy", "tf-keras")
    found = packages(*(replace(package(name, "1.0"), installer="conda") for name in names))
    there = target(environment="conda", prefix="/opt/conda/envs/job")
    assert install(there, found, requirement) == f"conda install --yes --prefix /opt/conda/envs/job {spec}"


def test_pip_installs_what_it_owns_in_a_conda_environment() -> None:
    found = packages(package("tensorflow", "2.21.0"), package("numpy", "2.0"))
    assert install(target(environment="conda"), found, "numpy<2") == f"{PYTHON} -m pip install 'numpy<2'"


def test_conda_removes_what_it_owns() -> None:
    found = packages(replace(package("tensorflow", "2.21.0"), installer="conda"))
    there = target(environment="conda", prefix="/opt/conda/envs/job")
    assert uninstall(there, found, "tensorflow") == "conda remove --yes --prefix /opt/conda/envs/job tensorflow"


def test_conda_restores_its_own_revision() -> None:
    found = packages(replace(package("tensorflow", "2.21.0"), installer="conda"))
    rollback = restore(target(environment="conda", prefix="/opt/conda/envs/job"), found, "nvidia-cudnn-cu12")
    assert rollback.commands == (
        "conda list --prefix /opt/conda/envs/job --revisions",
        "conda install --yes --prefix /opt/conda/envs/job --revision '<number>'",
    )


@cases(
    ({"keras": "pip"}, True, "pip"),
    ({"keras": "uv"}, True, "uv"),
    ({"keras": "uv"}, False, "uv"),
    ({"keras": "pip"}, False, "uv"),  # pip was removed later, so only uv can change it
    ({"keras": "UV"}, True, "uv"),
    ({"keras": None}, True, "pip"),
    ({"keras": None}, None, "pip"),
    ({"keras": None, "numpy": "uv"}, True, "uv"),
    ({"numpy": "uv"}, True, "uv"),
    ({"numpy": "uv", "h5py": "pip"}, True, "pip"),
    ({"keras": "pip", "numpy": "uv", "h5py": "uv"}, True, "pip"),
    ({"keras": "conda"}, True, "pip"),  # only a copied environment has this outside conda
    ({"keras": "conda"}, False, "uv"),
)
def test_installer_in_a_virtual_environment(
    installers: dict[str, str | None],
    has_pip: bool | None,  # noqa: FBT001 - by the table
    expected: Installer,
) -> None:
    found = packages(*(replace(package(name, "1.0"), installer=by) for name, by in installers.items()), has_pip=has_pip)
    assert installer_of(target(), found, "keras") == expected


@cases((("numpy",), "conda"), (("keras",), "pip"), (("numpy", "keras"), "conda"), (("absent",), "pip"), ((), "pip"))
def test_installer_in_a_conda_environment(names: tuple[str, ...], expected: Installer) -> None:
    owners = {"numpy": "conda", "keras": "pip"}
    found = packages(*(replace(package(name, "1.0"), installer=by) for name, by in owners.items()))
    assert installer_of(target(environment="conda"), found, *names) == expected


def test_installer_without_facts_is_pip() -> None:
    assert installer_of(None, None, "keras") == "pip"


def test_package_that_uv_installed_is_fixed_and_restored_by_uv_next_to_pip() -> None:
    found = packages(replace(package("keras", "3.6.0"), installer="uv"))
    assert install(target(), found, "keras>=3.10") == f"uv pip install --python {PYTHON} 'keras>=3.10'"
    assert restore(target(), found, "keras").commands == (f"uv pip install --python {PYTHON} keras==3.6.0",)


@pytest.mark.parametrize(
    ("wanted", "required", "expected"),
    [
        ("keras", "keras<2.16,>=2.15", "'keras>=2.15,<2.16'"),
        ("keras>=3.10", "keras>=3.12.0", "'keras>=3.12.0'"),
        ("keras>=3.10", "keras<2.16,>=2.15", "'keras>=3.10'"),  # there is none for both
        ("keras==3.10.0", "keras>=3.12.0", "keras==3.10.0"),
        ("keras>=3.10", 'keras>=3.12.0; python_version < "3"', "'keras>=3.10'"),
        ("keras>=3.10", 'keras>=3.12.0; extra == "all"', "'keras>=3.10'"),
        ("keras>=3.10", "keras @ https://host/keras.whl", "'keras>=3.10'"),
        ("keras", "not ( one", "keras"),
    ],
)
def test_requirement_is_narrowed_to_what_other_packages_accept(wanted: str, required: str, expected: str) -> None:
    there = packages(package("tensorflow", "2.15.1", required))
    assert install(target(), there, wanted) == f"{PYTHON} -m pip install {expected}"


def test_packages_that_the_command_changes_narrow_nothing() -> None:
    there = packages(package("tensorflow", "2.15.1", "keras<2.16"))
    assert install(target(), there, "keras", "tensorflow") == f"{PYTHON} -m pip install keras tensorflow"


@cases(
    ("<8,>=3,>=6.31", ">=6.31,<8"),
    (">=6.31,<8,>=10,<9.5", ">=10,<8"),
    ("!=2.5,<3", "!=2.5,<3"),
    ("~=2.1", "~=2.1"),
    ("", ""),
)
def test_narrowest_bounds_are_kept(text: str, narrow: str) -> None:
    assert narrowest(SpecifierSet(text)) == narrow
