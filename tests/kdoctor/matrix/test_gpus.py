"""Names of GPUs: from drivers, from users, and ambiguous ones."""

import re

from helpers.cases import cases
from kdoctor.matrix.gpus import GpuNameError, find_gpu
from kdoctor.matrix.load import load_matrix

MATRIX = load_matrix(environ={})


@cases(
    ("NVIDIA A100 80GB PCIe", "8.0"),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
    ("NVIDIA H100 80GB HBM3", "9.0"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
    ("3090", "8.6"),
    ("rtx3090ti", "8.6"),
    ("RTX 40", "8.9"),
    ("Tesla V100-SXM2-16GB", "7.0"),
    ("t4", "7.5"),
    ("NVIDIA A40-48Q", "8.6"),
    ("NVIDIA RTX 6000 Ada Generation", "8.9"),
    ("Quadro RTX 6000", "7.5"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
    ("8.6", "8.6"),
    ("sm_90", "9.0"),
    ("compute_100", "10.0"),
    ("cc 7.5", "7.5"),
)
def test_name_has_its_capability(name: str, capability: str) -> None:
    assert find_gpu(MATRIX, name).capability == capability


def answer(name: str) -> str:
    """The capability of a GPU; or why the name is ambiguous."""
    try:
        return find_gpu(MATRIX, name).capability
    except GpuNameError as error:
        return str(error)


def test_every_model_of_the_matrix_is_found_by_its_name() -> None:
    for kind in MATRIX.gpus:
        for model in kind.names:
            assert kind.capability in answer(re.sub(r"\[\w*-?(\w)\]", r"\1", model)), model
