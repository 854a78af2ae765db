from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from helpers.facts import (
    DRIVER,
    cpu_host,
    environment,
    gpu,
    gpus,
    h100_node,
    host,
    keras,
    package,
    packages,
    target,
    tensorflow,
)
from helpers.facts.libraries import libraries
from helpers.locks import node_facts
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.init import draft
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.resolve import Checklist
from kdoctor.facts import FactGroup
from kdoctor.model import GpuAssumption
from kdoctor.testing import fact_table


def drafted(folder: Path, catalog: Catalog, *facts: FactGroup, full: bool = False) -> tuple[Checklist, str]:
    text = draft(fact_table(*facts), catalog, file=Path("node.yaml"), owner="ml-platform", full=full)
    (folder / "node.yaml").write_text(text)
    return load_checklist(str(folder / "node.yaml"), catalog), text


def test_draft_expects_the_current_state_of_a_gpu_node(tmp_path: Path, catalog: Catalog) -> None:
    checklist, text = drafted(tmp_path, catalog, *h100_node(), environment(NCCL_DEBUG="WARN"))
    assert (checklist.name, checklist.version, checklist.owner) == ("node", 1, "ml-platform")
    stated = checklist.assumptions
    assert stated.python == ">=3.11,<3.12"
    assert stated.gpus == GpuAssumption(count=8, model="NVIDIA H100 80GB HBM3")
    assert stated.packages == {"tensorflow": "~=2.21.0", "keras": "~=3.15.1", "numpy": "~=2.4.6"}
    assert stated.environment == {"NCCL_DEBUG": "WARN"}
    asked = {entry.check.id for entry in checklist.entries}
    assert {"gpu.model-expected", "versions.packages-expected", "environment.variables-expected"} <= asked
    assert {entry.scenario.kind for entry in checklist.scenarios} == {"baseline", "edge-case", "failure-path"}
    assert checklist.rollback
    assert checklist.rollback.decides == "ml-platform"
    assert "\nextends: multi-gpu-keras\n" in text
    # Checks of later versions are inherited, so none is listed.
    assert "\nchecks:" not in text


@pytest.mark.parametrize("state", [h100_node(), cpu_host(), ()], ids=["GPUs", "no GPU", "no facts"])
def test_full_draft_is_equivalent(tmp_path: Path, catalog: Catalog, state: tuple[FactGroup, ...]) -> None:
    short, _ = drafted(tmp_path, catalog, *state)
    full, text = drafted(tmp_path, catalog, *state, full=True)
    assert "extends" not in text
    assert full.extends == ()
    assert short.assumptions.stated() == full.assumptions.stated()
    assert {entry.check.id for entry in short.entries} == {entry.check.id for entry in full.entries}
    assert short.scenarios == full.scenarios
    assert short.rollback == full.rollback


def test_draft_for_one_gpu_extends_its_checklist_if_there_is_one(tmp_path: Path, catalog: Catalog) -> None:
    shipped = {name: file for name, file in catalog.checklists.items() if name != "single-gpu-keras"}
    without = replace(catalog, checklists=shipped)
    assert drafted(tmp_path, without, *h100_node(1))[0].extends[0].startswith("multi-gpu-keras ")
    file = tmp_path / "single-gpu-keras.yaml"
    file.write_text(shipped["multi-gpu-keras"].read_text().replace("multi-gpu-keras", "single-gpu-keras"))
    one = replace(catalog, checklists={**shipped, "single-gpu-keras": file})
    assert drafted(tmp_path, one, *h100_node(1))[0].extends[0].startswith("single-gpu-keras ")


def test_draft_expects_driver_libraries_and_flags(tmp_path: Path, catalog: Catalog) -> None:
    image = host(container="docker", image="registry.example/train:7", image_from="KDOCTOR_IMAGE")
    flags = environment(
        XLA_FLAGS="--xla_gpu_autotune_level=4 --xla_gpu_deterministic_ops", TF_DETERMINISTIC_OPS="1",
        NVIDIA_TF32_OVERRIDE="0",
    )  # fmt: skip
    checklist, text = drafted(tmp_path, catalog, *h100_node(), libraries(), image, flags)
    stated = checklist.assumptions
    assert stated.framework == {"flavour": "keras", "backend": "tensorflow"}
    assert stated.driver == f">={DRIVER}"
    assert stated.sdk == {"cuda": "~=12.5"}
    assert stated.libraries == {"cudart": "~=12.9", "cudnn": "~=9.24", "nccl": "~=2.27"}
    assert stated.image == "registry.example/train:7"
    assert stated.flags == {
        "keras.floatx": "float32",
        "keras.epsilon": "1e-07",
        "keras.image_data_format": "channels_last",
        "xla_gpu_autotune_level": "4",
        "xla_gpu_deterministic_ops": "true",
    }
    assert stated.environment == {"TF_DETERMINISTIC_OPS": "1", "NVIDIA_TF32_OVERRIDE": "0"}
    asked = {entry.check.id for entry in checklist.entries}
    assert {"versions.runtime-expected", "environment.variables-expected"} <= asked
    assert "# here: 2.27.7" in text


def test_draft_without_gpus_expects_neither_driver_nor_cuda(tmp_path: Path, catalog: Catalog) -> None:
    stated = drafted(tmp_path, catalog, *cpu_host(), libraries())[0].assumptions
    assert (stated.driver, stated.sdk, stated.libraries) == (None, {}, {})


def test_draft_without_facts_has_no_assumptions(tmp_path: Path, catalog: Catalog) -> None:
    checklist, text = drafted(tmp_path, catalog)
    assert checklist.assumptions.stated() == frozenset()
    assert "extends: multi-gpu-keras" in text  # in the comment for GPU machines


def test_draft_omits_paths_and_serial_numbers(tmp_path: Path, catalog: Catalog) -> None:
    variables = environment(
        CUDA_VISIBLE_DEVICES="GPU-00000000-1111-2222-3333-444444444444", XLA_FLAGS="--dir=/home/ada"
    )
    checklist, text = drafted(tmp_path, catalog, *h100_node(), variables)
    assert checklist.assumptions.environment == {}
    assert "GPU-0000" not in text
    assert "/home/ada" not in text


def test_draft_escapes_odd_versions_and_models(tmp_path: Path, catalog: Catalog) -> None:
    odd = packages(package("tensorflow", "2.21.0+cpu.local"), package("keras", "3"), package("numpy", "not a version"))
    mixed = gpus(2, gpu(0, name="NVIDIA [x] *"), gpu(1, name="NVIDIA [x] *"))
    checklist, _ = drafted(tmp_path, catalog, *h100_node(2), odd, mixed)
    assert checklist.assumptions.packages == {"tensorflow": "~=2.21.0", "keras": "~=3.0"}
    assert checklist.assumptions.gpus == GpuAssumption(count=2, model="NVIDIA [[]x] [*]")


INJECTED = 'x"\nwaivers:\n  - {check: "*", subject: "*", reason: r, owner: o, expires: 2099-01-01}\n#'


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "changed",
    [
        replace(target(), version=f"3.12{INJECTED}"),
        replace(target(), version="3"),
        replace(keras(), package=cast("Any", INJECTED)),
        replace(keras(), backend=INJECTED, settings={INJECTED: INJECTED}),
        replace(tensorflow(), cuda_version=f"12.5{INJECTED}", distribution=INJECTED),
        replace(host(), image=INJECTED, image_from=INJECTED),
        environment(**{f"NCCL_{INJECTED}": INJECTED}),
    ],
)
def test_value_of_the_machine_adds_no_section(catalog: Catalog, changed: FactGroup, *, full: bool) -> None:
    written = yaml.safe_load(draft(node_facts(changed), catalog, file=Path(INJECTED), owner=INJECTED, full=full))
    assert written["rollback"]["decides"] == INJECTED
    assert "waivers" not in written


def test_commands_in_the_comments_name_the_file(tmp_path: Path, catalog: Catalog) -> None:
    text = draft(fact_table(), catalog, file=tmp_path / "my node.yaml", owner="ada")
    commands = [line.partition(": ")[2] for line in text.splitlines() if f"'{tmp_path}/my node.yaml'" in line]
    assert [command.partition(" '")[0] for command in commands] == [
        "kdoctor checklist validate",
        "kdoctor checklist show",
    ]
