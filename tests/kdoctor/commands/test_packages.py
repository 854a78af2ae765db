from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.facts import PYTHON, package, packages, target
from kdoctor.commands.packages import install, restore, uninstall


def test_pip_of_the_target_is_used_where_it_has_one_or_nobody_knows() -> None:
    for has_pip in (True, None):
        found = packages(package("numpy", "2.0"), has_pip=has_pip)
        assert install(target(), found, "numpy<2", "keras") == f"{PYTHON} -m pip install 'numpy<2' keras"
        assert uninstall(target(), found, "numpy") == f"{PYTHON} -m pip uninstall -y numpy"
    assert install(target(), None, "keras") == f"{PYTHON} -m pip install keras"


def test_uv_reaches_into_a_target_without_pip() -> None:
    found = packages(package("numpy", "2.0"), has_pip=False)
    assert install(target(), found, "keras") == f"uv pip install --python {PYTHON} keras"
    assert uninstall(target(), found, "keras") == f"uv pip uninstall --python {PYTHON} keras"


def test_a_path_with_blanks_is_quoted() -> None:
    assert install(target(executable="/my env/python"), None, "keras") == "'/my env/python' -m pip install keras"


def test_a_rollback_restores_recorded_versions_and_absences() -> None:
    way_back = restore(target(), packages(package("numpy", "2.0")), "numpy", "keras")
    assert way_back.commands == (
        f"{PYTHON} -m pip install numpy==2.0",
        f"{PYTHON} -m pip uninstall -y keras",
    )
    assert way_back.why == "what stood here before the fix: numpy==2.0, no keras"


def test_a_distribution_without_a_version_has_no_way_back() -> None:
    way_back = restore(target(), packages(package("numpy", None)), "numpy")
    assert way_back.kind == "irreversible"
    assert "numpy" in way_back.why


@pytest.mark.parametrize(
    ("requirement", "spec"),
    [  # conda-forge: the CUDA builds of TensorFlow are told by their build string, and cuDNN has three numbers
        ("tensorflow[and-cuda]==2.19.1", "'tensorflow=2.19.1=cuda*'"),
        ("tensorflow[and-cuda]", "'tensorflow=*=cuda*'"),
        ("nvidia-cudnn-cu12==9.10.2.21", "cudnn==9.10.2"),
        ("nvidia-cuda-nvcc-cu12", "cuda-nvcc"),
        ("numpy<2", "'numpy<2'"),
        ("tf-keras~=2.19.0", "'tf-keras~=2.19.0'"),
    ],
)
def test_conda_changes_what_conda_installed(requirement: str, spec: str) -> None:
    names = ("tensorflow", "numpy", "tf-keras")
    found = packages(*(replace(package(name, "1.0"), installer="conda") for name in names))
    there = target(environment="conda", prefix="/opt/conda/envs/job")
    assert install(there, found, requirement) == f"conda install --yes --prefix /opt/conda/envs/job {spec}"


def test_pip_changes_what_pip_installed_into_a_conda_environment() -> None:
    found = packages(package("tensorflow", "2.21.0"), package("numpy", "2.0"))
    assert install(target(environment="conda"), found, "numpy<2") == f"{PYTHON} -m pip install 'numpy<2'"


def test_conda_removes_what_conda_installed() -> None:
    found = packages(replace(package("tensorflow", "2.21.0"), installer="conda"))
    there = target(environment="conda", prefix="/opt/conda/envs/job")
    assert uninstall(there, found, "tensorflow") == "conda remove --yes --prefix /opt/conda/envs/job tensorflow"


def test_conda_goes_back_by_its_own_record() -> None:
    found = packages(replace(package("tensorflow", "2.21.0"), installer="conda"))
    way_back = restore(target(environment="conda", prefix="/opt/conda/envs/job"), found, "nvidia-cudnn-cu12")
    assert way_back.commands == (
        "conda list --prefix /opt/conda/envs/job --revisions",
        "conda install --yes --prefix /opt/conda/envs/job --revision '<number>'",
    )
