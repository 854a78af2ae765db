import re

import pytest

from helpers.facts import environment, host, smoke_case, smoke_run, target
from helpers.facts.libraries import libraries
from helpers.locks import node_facts
from kdoctor.facts import Environment, FactGroup, Gpus, Library, Packages, Unavailable
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


def test_secrets_and_addresses_are_withheld() -> None:
    facts = node_facts(environment(NCCL_COMM_ID="10.0.0.7:1234", NCCL_ENV="https://***@x", CUDA_VERSION="12.8.1.012"))
    assert recorded_facts(facts).facts["environment"] == {
        "CUDA_VERSION": "12.8.1.012", "NCCL_COMM_ID": WITHHELD, "NCCL_ENV": WITHHELD
    }  # fmt: skip
    assert recorded_facts(facts, identifiers=True).facts["environment"]["NCCL_ENV"] == WITHHELD


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


@pytest.mark.parametrize(("step_s", "low", "high"), [(0.002, 0.0, 0.014), (0.1, 0.04, 0.21)])
def test_steps_on_cpu_devices_have_a_wider_range(step_s: float, low: float, high: float) -> None:
    run = smoke_run("smoke.baseline", 8, smoke_case(step_s=step_s), devices_kind="cpu")
    speed = recorded_facts(node_facts(run)).measured["smoke.baseline/mirrored/step-seconds"]
    assert (speed.value, speed.low, speed.high) == (step_s, low, high)


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
