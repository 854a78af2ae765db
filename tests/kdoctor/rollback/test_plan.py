import json
from dataclasses import replace

import pytest

from helpers.facts import environment, gpus, host, keras, kernel, package, packages
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.locks import RECORDED, lock, node_facts
from helpers.rollbacks import planned, with_packages
from kdoctor.facts import Libraries, Packages, Target, Unavailable
from kdoctor.lock.facts import recorded_facts
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.render import as_script, as_text

IMAGES = {"container": "none", "os_release": "Ubuntu 24.04.2 LTS", "image_from": "KDOCTOR_IMAGE"}


def test_no_drift_gives_an_empty_plan() -> None:
    plan = planned()
    assert plan.is_empty
    assert (plan.lock, plan.recorded, plan.unread, plan.caution) == ("job.lock.yaml", RECORDED, (), None)
    assert [line for line in as_text(plan).splitlines() if line.startswith(("1.", "   "))] == [f"   {plan.again}"]


def test_lock_of_another_environment_gives_a_caution() -> None:
    others = packages(package("keras", "3.6.0"), package("pytest", "9.0"), package("ruff", "0.17"))
    plan = planned(others)
    assert plan.caution is not None
    assert plan.caution.startswith("9 of 9 ")
    assert plan.caution in as_text(plan)
    assert plan.caution in as_script(plan)
    assert json.loads(plan.to_json())["caution"] == plan.caution
    assert planned(with_packages(package("jax", "0.6"))).caution is None


def test_library_that_the_recorded_build_did_not_open_is_not_restored() -> None:
    plan = planned(libraries(missing("cudnn")), to=lock(no_libraries()))
    assert plan.is_empty


def test_steps_without_root_come_first_and_the_reboot_last() -> None:
    def system_nccl(version: str) -> Libraries:
        return libraries(library("nccl", version=version, package=None, path="/usr/lib/libnccl.so.2"))

    before = lock(host(image="train:7", **IMAGES), system_nccl("2.27.7"))
    plan = planned(
        host(image="train:8", **IMAGES),
        with_packages(package("keras", "3.6.0")),
        keras(
            version="3.6.0", settings={"floatx": "float16", "epsilon": "1e-07", "image_data_format": "channels_last"}
        ),
        environment(),
        system_nccl("2.21.5"),
        gpus(driver_version="575.57.08"),
        kernel(version="575.57.08"),
        to=before,
    )
    assert [(step.restores[0].partition(":")[0], step.needs_root, step.needs_reboot) for step in plan.steps] == [
        ("host.image", False, False),
        ("packages.keras", False, False),
        ("environment.NCCL_DEBUG", False, False),
        ("keras.floatx", False, False),
        ("libraries.nccl", True, False),
        ("driver.module", True, True),
    ]
    assert all(step.verify for step in plan.steps)
    assert plan.by_hand == ()


@pytest.mark.parametrize(("known", "unknown", "cautious"), [(2, 3, True), (9, 2, False), (9, 0, False), (0, 1, True)])
def test_caution_begins_above_half_of_the_packages(known: int, unknown: int, cautious: bool) -> None:  # noqa: FBT001
    others = [package(f"other{number}") for number in range(unknown)]
    plan = planned(packages(*packages().installed[:known], *others))
    assert (plan.caution is not None) is cautious


def test_lock_without_packages_gives_no_caution() -> None:
    whole = lock()
    facts = {name: facts for name, facts in whole.facts.items() if name != "packages"}
    assert planned(to=whole.model_copy(update={"facts": facts})).caution is None


def test_what_could_not_be_compared_is_listed() -> None:
    facts = {**node_facts(), Packages: Unavailable(unavailable="the interpreter hung")}
    without = {**facts, Target: facts[Packages]}
    for before in (lock(), lock(replace(packages(), conda=("numpy=2.4.6=py311_1",)))):
        assert plan_rollback(before, recorded_facts(without), read_installation(without), "", "").is_empty
    plan = plan_rollback(lock(), recorded_facts(facts), read_installation(facts), "job.lock.yaml", "job.yaml")
    assert plan.is_empty
    assert plan.unread == ("packages: the interpreter hung",)
    assert "packages: the interpreter hung" in as_script(plan)
    same, lines = as_text(planned()).splitlines(), as_text(plan).splitlines()
    assert (same[1], same[-1]) == ("Nothing recorded has drifted.", f"   {plan.again}")
    assert (same[1] in lines, lines[4:5]) == (False, ["  - packages: the interpreter hung"])
