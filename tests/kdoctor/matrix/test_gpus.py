"""Names of GPUs: from drivers, from users, and ambiguous ones."""

import re

import pytest

from helpers.cases import cases
from kdoctor.matrix.gpus import GpuNameError, find_gpu
from kdoctor.matrix.load import load_matrix

MATRIX = load_matrix(environ={})


@cases(
    ("NVIDIA A100-SXM4-80GB", "8.0"),
    ("NVIDIA A100 80GB PCIe", "8.0"),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
    ("NVIDIA H100 80GB HBM3", "9.0"),
    ("NVIDIA H100 PCIe", "9.0"),
    ("H200", "9.0"),
    ("NVIDIA GeForce RTX 4090", "8.9"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
    ("NVIDIA GeForce RTX 3080 Ti", "8.6"),
    ("3090", "8.6"),
    ("RTX 3090", "8.6"),
    ("rtx3090ti", "8.6"),
    ("RTX 40", "8.9"),
    ("5090", "12.0"),
    ("Tesla V100-SXM2-16GB", "7.0"),
    ("Tesla T4", "7.5"),
    ("t4", "7.5"),
    ("NVIDIA L4", "8.9"),
    ("NVIDIA L40S", "8.9"),
    ("NVIDIA A10G", "8.6"),
    ("NVIDIA A40-48Q", "8.6"),
    ("NVIDIA RTX A6000", "8.6"),
    ("NVIDIA RTX 6000 Ada Generation", "8.9"),
    ("Quadro RTX 6000", "7.5"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
    ("NVIDIA B200", "10.0"),
    ("Tesla K80", "3.7"),
    ("Tesla P100-PCIE-16GB", "6.0"),
    ("8.6", "8.6"),
    ("sm_90", "9.0"),
    ("compute_100", "10.0"),
    ("cc 7.5", "7.5"),
    ("5.0", "5.0"),
    ("3.5", "3.5"),
    ("10.7", "10.7"),
    ("8.8", "8.8"),
)
def test_name_has_its_capability(name: str, capability: str) -> None:
    assert find_gpu(MATRIX, name).capability == capability


@pytest.mark.parametrize("name", ["Radeon", "AMD Instinct MI250", "Intel Gaudi2", "M1 Pro", "TPU v4"])
def test_gpus_of_other_makers_get_no_suggestion(name: str) -> None:
    with pytest.raises(GpuNameError, match="not an NVIDIA GPU") as caught:
        find_gpu(MATRIX, name)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["GH200", "NVIDIA GH200 480GB", "GB10", "Jetson AGX Orin"])
def test_models_of_arm_machines_are_marked(name: str) -> None:
    assert find_gpu(MATRIX, name).arm_only


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


@pytest.mark.parametrize("name", ["RTX 6000", "6000", "RTX", "Jetson"])
def test_ambiguous_name_lists_the_models(name: str) -> None:
    with pytest.raises(GpuNameError, match=r"ambiguous: .* \(\d+\.\d\), "):
        find_gpu(MATRIX, name)


@cases(("H1000", "H100"), ("A", "A2"), ("", ""), ("80GB", ""), ("40", ""), ("A1OO", "A100"), ("RTX 4O90", "RTX 40"))
def test_unknown_name_has_a_suggestion(name: str, suggested: str) -> None:
    with pytest.raises(GpuNameError, match="unknown") as caught:
        find_gpu(MATRIX, name)
    assert suggested in str(caught.value)
