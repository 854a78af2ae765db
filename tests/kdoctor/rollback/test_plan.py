from __future__ import annotations

import json

from kdoctor.rollback.document import RollbackPlan

from helpers.facts import environment, gpus, host, keras, kernel, package, packages
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.locks import RECORDED, lock
from helpers.rollbacks import planned, with_packages
from kdoctor.facts import Libraries
from kdoctor.rollback.render import as_json, as_script, as_text

IMAGES = {"container": "none", "os_release": "Ubuntu 24.04.2 LTS", "image_from": "KDOCTOR_IMAGE"}


def test_where_nothing_drifted_there_is_nothing_to_do() -> None:
    plan = planned()
    assert plan == RollbackPlan(lock="job.lock.yaml", recorded=RECORDED, again=plan.again)
    assert plan.is_empty
    assert "Nothing has drifted" in as_text(plan)


def test_a_lock_of_another_environment_is_warned_of() -> None:
    others = packages(package("keras", "3.6.0"), package("pytest", "9.0"), package("ruff", "0.17"))
    plan = planned(others)
    assert plan.caution == (
        "2 of the 3 packages here are not in the lock: it may be that of another environment (name the right one with "
        "--python)"
    )
    assert f"Beware: {plan.caution}.\n" in as_text(plan)
    assert "echo 'Beware: 2 of the 3" in as_script(plan)
    assert json.loads(as_json(plan))["caution"] == plan.caution
    assert planned(with_packages(package("jax", "0.6"))).caution is None


def test_a_library_that_the_recorded_build_did_not_open_need_not_come_back() -> None:
    plan = planned(libraries(missing("cudnn")), to=lock(no_libraries()))
    assert plan.is_empty


def test_what_needs_no_root_comes_first_and_the_reboot_last() -> None:
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
