"""No fix changes kdoctor's own environment, unless the user named it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from helpers.cases import cases
from helpers.catalogs import described
from helpers.facts import package, packages
from helpers.facts import target as target_facts
from helpers.locks import lock, node_facts
from kdoctor.commands.ownership import CHECK_ANOTHER, changes_packages
from kdoctor.commands.packages import (
    conda_command,
    create_environment,
    install,
    pip_command,
    uninstall,
    verify_conda,
    verify_versions,
)
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.lock.facts import recorded_facts
from kdoctor.model import Assumptions, Evidence, Finding, Outcome, Remedy, Rollback, Status
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.testing import compute_check
from kdoctor_checks.versions.packages_expected import packages_expected
from kdoctor_checks.versions.tensorflow_installed import tensorflow_installed

OWN = target_facts(stand_in=True)
NAMED = target_facts()


@cases(
    pip_command("pip", "/opt/own/bin/python", "install", "keras"),
    pip_command("pip", "/opt/own/bin/python3.11", "uninstall", "keras"),
    pip_command("uv", "/opt/own/bin/python", "install", "keras"),
    pip_command("ensurepip", "/opt/own/bin/python", "install", "keras"),
    conda_command("install", "/opt/own", "keras"),
    conda_command("remove", "/opt/own", "keras"),
    "pip install keras",
    "sudo pip3 install keras",
    "uv sync",
    "'/opt/a b/bin/python' -m pip install 'keras>=3'",
    "pip install 'unbalanced",
    "cd /opt/own && pip install keras",
)
def test_commands_that_change_packages_are_known(command: str) -> None:
    assert changes_packages(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "sudo",
        "sudo apt-get install nvidia-driver-570",
        "sudo reboot",
        "export CUDA_VISIBLE_DEVICES=0",
        "kdoctor check --python PATH",
        "/opt/own/bin/python -m pip list",
        "docker run --gpus all -it image pip install keras",
        "docker run 'a>b' pip install keras",
        create_environment("uv", "3.11", "/opt/job"),
        create_environment("pip", "3.11", "/opt/job"),
        conda_command("create", "/opt/job", "python=3.11"),
        verify_versions("/opt/own/bin/python", {"keras": "3.15.1"}),
        *verify_conda("/opt/own", {"keras": "3.15.1=0"}),
    ],
)
def test_other_commands_are_kept(command: str) -> None:
    assert not changes_packages(command)


def test_missing_tensorflow_is_not_installed_into_kdoctors_environment() -> None:
    missing, none = TensorFlowBuild(installed=False), replace(packages(), installed=())
    own = compute_check(tensorflow_installed, missing, none, OWN)
    assert own.status is Status.FAIL
    (finding,) = (item.finding for item in own.findings)
    assert (finding.remedy.commands, finding.rollback.commands, finding.explained_by) == ((CHECK_ANOTHER,), (), ())
    named = compute_check(tensorflow_installed, missing, none, NAMED)
    assert named.findings[0].finding.remedy.commands == (install(NAMED, none, "tensorflow[and-cuda]"),)


def test_other_package_follows_from_the_missing_tensorflow() -> None:
    wanted = Assumptions(packages={"numpy": ">=99"})
    result = compute_check(packages_expected, packages(package("numpy", "2.1.0")), OWN, assumptions=wanted)
    (finding,) = (item.finding for item in result.findings)
    assert finding.remedy.commands == (CHECK_ANOTHER,)
    assert finding.explained_by == ("versions.tensorflow-installed",)


@described("host.example")
def _plugin(installed: Packages, target: Target) -> Iterator[Outcome]:
    yield Evidence(subject="one", observed="well")
    for commands in (("sudo reboot",), ("sudo reboot", uninstall(target, installed, "numpy"))):
        yield Finding(
            subject="two",
            observed="bad",
            expected="good",
            remedy=Remedy.reboot("Do it.", *commands),
            rollback=Rollback.nothing("not needed"),
        )


@pytest.mark.parametrize(("kind", "is_said"), [("venv", True), ("conda", True), ("system", False)])
def test_environment_of_another_user_is_changed_by_its_owner(kind: str, *, is_said: bool) -> None:
    locked = target_facts(read_only=True, environment=kind)
    rebooting, changing = (item.finding.remedy for item in compute_check(_plugin, packages(), locked).findings)
    assert ("owner" in changing.summary, "owner" in rebooting.summary) == (is_said, False)
    assert len(changing.commands) == 2


def test_rule_holds_for_every_check_and_leaves_other_fixes_alone() -> None:
    result = compute_check(_plugin, packages(), OWN)
    assert [item.finding.remedy.commands for item in result.findings] == [("sudo reboot",), (CHECK_ANOTHER,)]
    assert len(result.evidence) == 1
    assert len(compute_check(_plugin, packages(), NAMED).findings[1].finding.remedy.commands) == 2


def test_rollback_does_not_change_kdoctors_environment() -> None:
    facts = node_facts(packages(package("keras", "3.6.0")), OWN)
    plan = plan_rollback(lock(), recorded_facts(facts), read_installation(facts), "job.lock.yaml", "job.yaml")
    assert not [command for step in plan.steps for command in step.commands if changes_packages(command)]
    assert len(plan.by_hand) == 1
    assert "--python" in plan.by_hand[0]
    assert plan.again.endswith("kdoctor check --checklist job.yaml --python PATH")
