from __future__ import annotations

from helpers.facts import PYTHON, package, packages, target
from kdoctor_checks._install import install, restore, uninstall


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
    assert way_back.why == "what was recorded: numpy==2.0, no keras"


def test_a_distribution_without_a_version_has_no_way_back() -> None:
    way_back = restore(target(), packages(package("numpy", None)), "numpy")
    assert way_back.kind == "irreversible"
    assert "numpy" in way_back.why
