"""Every product of NVIDIA's list has its compute capability.

``gpu_names.txt`` has the PCI ids and names in README.md of NVIDIA/open-gpu-kernel-modules at df1c9a3de2be, without
mining and display products. Products of one chip share a block of ids, so a name on developer.nvidia.com/cuda-gpus
gives the capability of its block.
"""

from pathlib import Path

import pytest

from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix

MATRIX = load_matrix(environ={})
BLOCKS = {
    "1E": "7.5", "1F": "7.5", "21": "7.5", "20": "8.0", "22": "8.6", "24": "8.6", "25": "8.6", "23": "9.0", "26": "8.9",
    "27": "8.9", "28": "8.9", "29": "10.0", "31": "10.3", "2B": "12.0", "2C": "12.0", "2D": "12.0", "2F": "12.0",
    "2E": "12.1",
}  # fmt: skip
"""The first digits of the PCI id to the capability of the names on developer.nvidia.com/cuda-gpus in that block."""

NAMES = [
    line.split("|", 1) for line in Path(__file__).with_name("gpu_names.txt").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize(("block", "capability"), BLOCKS.items())
def test_names_of_a_block_have_its_capability(block: str, capability: str) -> None:
    names = [name for pci, name in NAMES if pci.startswith(block)]
    assert names
    assert {name: find_gpu(MATRIX, name).capability for name in names} == dict.fromkeys(names, capability)


def test_every_block_is_known() -> None:
    assert {pci[:2] for pci, _ in NAMES} == set(BLOCKS)
