import re
from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import environment, gpu, gpus, host, keras, kernel, packages, pair, smoke_case, smoke_run, target
from helpers.facts.libraries import libraries
from helpers.locks import node_facts
from kdoctor.facts import Environment, FactGroup, Gpus, Library, Packages, SmokeRuns, Unavailable, Weights
from kdoctor.lock.facts import WITHHELD, recorded_facts


def test_gpus_and_topology_are_recorded_by_shape() -> None:
    found = recorded_facts(node_facts()).facts
    assert found["gpus"] == {
        "count": "8",
        "model.NVIDIA H100 80GB HBM3": "8",
        "compute-capability.9.0": "8",
        "memory-mib.81559": "8",
        "pcie.gen5 x16": "8",
    }
    assert found["topology"] == {"pairs.NODE": "28"}
    assert found["driver"]["version"] == "580.105.08"
    assert found["packages"]["keras"] == "3.15.1"


def test_mixed_gpus_are_counted_by_model() -> None:
    mixed = gpus(2, gpu(0), gpu(1, name="NVIDIA A100", pcie_generation=1))  # which is idle
    found = recorded_facts(node_facts(mixed)).facts["gpus"]
    assert (found["model.NVIDIA H100 80GB HBM3"], found["model.NVIDIA A100"]) == ("1", "1")
    assert found["pcie.gen5 x16"] == "2"


def test_pair_whose_level_was_not_read_is_not_recorded() -> None:
    assert not recorded_facts(node_facts(gpus(2, pairs=(pair(level=None),)))).facts["topology"]


def test_identifiers_are_recorded_only_on_request() -> None:
    variables = environment(
        CUDA_VISIBLE_DEVICES="GPU-00000000-1111-2222-3333-444444444444",
        LD_LIBRARY_PATH="/home/ada/cuda/lib64",
        TF_CONFIG='{"cluster": {"worker": ["node7:1234"]}}',
        SLURM_JOB_ID="4711",
        NCCL_DEBUG="WARN",
    )
    facts = node_facts(variables, target())
    found = recorded_facts(facts)
    assert found.facts["environment"] == {
        "CUDA_VISIBLE_DEVICES": WITHHELD,
        "LD_LIBRARY_PATH": WITHHELD,
        "NCCL_DEBUG": "WARN",
        "TF_CONFIG": WITHHELD,
    }
    text = str(found.facts)
    assert not re.search(r"/opt|/home|GPU-0|0000:10|node7|4711", text)
    with_identifiers = str(recorded_facts(facts, identifiers=True).facts)
    for trace in ("/opt/job/bin/python", "/home/ada", "GPU-00000000", "0000:10:00.0", "node7"):
        assert trace in with_identifiers


def test_image_is_recorded_without_the_path_of_a_file() -> None:
    named = host(container="docker", image="registry.example/train:7", image_from="KDOCTOR_IMAGE")
    assert recorded_facts(node_facts(named)).facts["host"]["image"] == "registry.example/train:7"
    file = host(container="apptainer", image="/home/ada/train-7.sif", image_from="APPTAINER_CONTAINER")
    assert recorded_facts(node_facts(file)).facts["host"]["image"] == "train-7.sif"
    assert recorded_facts(node_facts(file), identifiers=True).facts["host"]["image"] == "/home/ada/train-7.sif"
    assert "image" not in recorded_facts(node_facts(host(container="docker"))).facts["host"]


def test_keras_settings_and_conda_packages_are_recorded() -> None:
    facts = node_facts(replace(packages(), conda=("cudnn=9.10.1=h1", "ml_dtypes=0.5.3=py311_0")))
    found = recorded_facts(facts).facts
    assert found["keras"]["floatx"] == "float32"
    assert found["conda"] == {"cudnn": "9.10.1=h1", "ml_dtypes": "0.5.3=py311_0"}
    assert "conda" not in recorded_facts(node_facts()).facts


def test_secrets_and_addresses_are_withheld() -> None:
    facts = node_facts(environment(NCCL_COMM_ID="10.0.0.7:1234", NCCL_ENV="https://***@x", CUDA_VERSION="12.8.1.012"))
    assert recorded_facts(facts).facts["environment"] == {
        "CUDA_VERSION": "12.8.1.012", "NCCL_COMM_ID": WITHHELD, "NCCL_ENV": WITHHELD
    }  # fmt: skip
    assert recorded_facts(facts, identifiers=True).facts["environment"]["NCCL_ENV"] == WITHHELD


def test_variables_of_one_job_are_left_out() -> None:
    facts = node_facts(environment(SLURM_JOB_ID="7", VIRTUAL_ENV="/opt/job", LD_LIBRARY_PATH="/opt/cuda"))
    found = recorded_facts(facts, identifiers=True)
    assert found.facts["environment"] == {"LD_LIBRARY_PATH": "/opt/cuda"}


def test_unreadable_section_is_not_recorded_as_empty() -> None:
    facts: dict[type[FactGroup], FactGroup | Unavailable] = {
        **node_facts(),
        Packages: Unavailable(unavailable="the interpreter hung"),
        Gpus: Unavailable(unavailable="NVML hung"),
    }
    del facts[Environment]
    found = recorded_facts(facts)
    assert "packages" not in found.facts
    assert found.unread["packages"] == "the interpreter hung"
    assert found.unread["environment"] == "it was not collected"
    assert found.unread["gpus"] == "NVML hung"


def test_outcome_of_each_case_is_recorded() -> None:
    run = smoke_run(
        "smoke.model-outside-scope", 8,
        smoke_case("compile-inside", outcome="raised", error_type="RuntimeError", losses=(), weights=None),
        smoke_case("nan", losses=(1.0, None)),
    )  # fmt: skip
    found = recorded_facts(node_facts(run))
    scenario = "smoke.model-outside-scope"
    assert found.facts["scenarios"][f"{scenario}/compile-inside/outcome"] == "raised RuntimeError"
    assert found.facts["scenarios"][f"{scenario}/nan/loss"] == "not finite"
    assert f"{scenario}/nan/final-loss" not in found.measured
    assert found.scenarios == {scenario}


def test_measures_have_their_ranges() -> None:
    measured = recorded_facts(node_facts(smoke_run("smoke.baseline", 8, smoke_case(losses=(1.0, 0.123456))))).measured
    loss = measured["smoke.baseline/mirrored/final-loss"]
    assert (loss.value, loss.low, loss.high) == (0.1235, 0.1225, 0.1245)
    speed = measured["smoke.baseline/mirrored/step-seconds"]
    assert (speed.value, speed.low, speed.high) == (0.01, 0.005, 0.02)


@pytest.mark.parametrize(("step_s", "low", "high"), [(0.002, 0.0, 0.014), (0.1, 0.04, 0.21)])
def test_steps_on_cpu_devices_have_a_wider_range(step_s: float, low: float, high: float) -> None:
    run = smoke_run("smoke.baseline", 8, smoke_case(step_s=step_s), devices_kind="cpu")
    speed = recorded_facts(node_facts(run)).measured["smoke.baseline/mirrored/step-seconds"]
    assert (speed.value, speed.low, speed.high) == (step_s, low, high)


def test_scenario_that_did_not_run_is_not_recorded() -> None:
    facts = {**node_facts(), SmokeRuns: SmokeRuns(runs={"smoke.baseline": Unavailable(unavailable="no GPU")})}
    assert recorded_facts(facts).scenarios == frozenset()


def test_legacy_keras_and_missing_kernel_module_are_recorded() -> None:
    found = recorded_facts(node_facts(keras(legacy=True), kernel(loaded=False, version=None))).facts
    assert (found["keras"]["legacy"], found["driver"]["module"]) == ("yes", "not loaded")
    healthy = recorded_facts(node_facts()).facts
    assert (healthy["keras"]["legacy"], healthy["driver"]["module"]) == ("no", "580.105.08")


def test_libraries_are_recorded_by_version_and_place_of_the_search() -> None:
    chosen = Library(
        name="cudnn", soname="libcudnn.so.9", needed_for="every GPU", status="found", path="/opt/a/libcudnn.so.9",
        found_by="RUNPATH", version="9.10.2",
    )  # fmt: skip
    lost = Library(name="nccl", soname=None, needed_for="several GPUs", status="built-in")
    facts = node_facts(libraries(chosen, lost))
    expected = {"cudnn": "9.10.2", "cudnn.file": "libcudnn.so.9", "cudnn.found-by": "RUNPATH", "nccl": "built-in"}
    found = recorded_facts(facts).facts["libraries"]
    assert {name: value for name, value in found.items() if name.startswith(("cudnn", "nccl"))} == expected
    with_paths = recorded_facts(facts, identifiers=True).facts["libraries"]
    assert with_paths["cudnn.path"] == "/opt/a/libcudnn.so.9"
    assert "nccl.path" not in with_paths


def test_weights_of_a_training_are_recorded() -> None:
    ruined = Weights(variables=6, mirrored=5, nonfinite=("dense/kernel",), replicas_agree=True)
    runs = node_facts(smoke_run("smoke.baseline", 8, smoke_case(), smoke_case("nan", weights=ruined)))
    found = recorded_facts(runs).facts["scenarios"]
    assert found["smoke.baseline/mirrored/weights"] == "finite"
    assert found["smoke.baseline/nan/weights"] == "not finite"
    assert found["smoke.baseline/nan/mirrored"] == "5 of 6"


@cases({"step_s": 0.0}, {"step_s": None}, {"outcome": "raised", "error_type": "ValueError"})
def test_only_a_training_with_a_step_has_a_speed(changed: dict[str, Any]) -> None:
    assert not [
        name
        for name in recorded_facts(node_facts(smoke_run("smoke.baseline", 8, smoke_case(**changed)))).measured
        if name.endswith("/step-seconds")
    ]
