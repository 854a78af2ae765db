"""Checks on healthy machines, read by the real probes, with a healthy ``tensorflow[and-cuda]``."""

import pytest

from helpers import machines
from helpers.facts import environment, h100_node
from helpers.facts.libraries import SOLVER_FOLDER, libraries, library
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks import checks

CHECKS = [
    check
    for check in checks()
    if check.family == "versions" or check.id in {"driver.libcuda-found", "driver.forward-compatibility"}
]


@pytest.mark.compiler
@pytest.mark.parametrize("name", machines.HEALTHY)
def test_healthy_machine_has_no_findings(name: str) -> None:
    read = machines.groups(name)
    driver = library("cuda", version=machines.gpus(name).driver_version)
    facts = (*h100_node(), *read, environment(LD_LIBRARY_PATH=SOLVER_FOLDER), libraries(driver))
    failed = {check.id for check in CHECKS if compute_check(check, *facts).status is not Status.PASS}
    # Every Keras 3 has features that it trains incorrectly. No other package is installed, and no version is agreed on.
    skipped = {"versions.keras-features", "versions.other-conflicts", "versions.packages-expected"}
    skipped.add("versions.runtime-expected")
    if name == "rtx5090":  # XLA of this release terminates the process on this GPU
        skipped.add("versions.known-hazards")
    assert failed == skipped
