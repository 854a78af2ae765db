from __future__ import annotations

from pathlib import Path

from helpers.dumps import NVLINK, UUID, imported_gpus
from kdoctor.facts import NvLink
from kdoctor.snapshot.imports.part import CUT


def test_links(tmp_path: Path) -> None:
    first, second = imported_gpus(tmp_path, NVLINK).devices
    assert first.nvlinks == (
        NvLink(index=0, active=True, speed_gbs=25.0),
        NvLink(index=1, active=False),
        NvLink(index=2, active=True, speed_gbs=26.562),
    )
    assert (second.index, second.uuid) == (1, UUID.format(1))


def test_all_links_inactive(tmp_path: Path) -> None:
    said = "NVML: Unable to retrieve NVLink information as all links are inactive"
    gpu = imported_gpus(tmp_path, f"GPU 6: NVIDIA Test 40GB (UUID: {UUID.format(6)})\n{said}\n").devices[0]
    assert gpu.index == 6
    assert gpu.nvlinks == (NvLink(index=0, active=False),)
    assert gpu.errors["nvlinks"] == said


def test_gpu_without_nvlink(tmp_path: Path) -> None:
    text = f"GPU 0: NVIDIA Test (UUID: {UUID.format(0)})\nDevice does not have or support Nvlink\n"
    gpu = imported_gpus(tmp_path, text).devices[0]
    assert gpu.nvlinks is None
    assert gpu.errors["nvlinks"] == "NVML_ERROR_NOT_SUPPORTED"


def test_truncated_links_are_unknown(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, NVLINK[: NVLINK.rindex("\t Link 2")])
    assert gpus.devices[0].nvlinks is not None
    assert gpus.devices[1].nvlinks is None
    assert gpus.devices[1].errors["nvlinks"] == CUT


def test_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    assert imported_gpus(tmp_path, NVLINK.rstrip("\n")) == imported_gpus(tmp_path, NVLINK)


def test_link_in_unknown_state(tmp_path: Path) -> None:
    gpu = imported_gpus(tmp_path, NVLINK.replace("<inactive>", "ERR!")).devices[0]
    assert gpu.nvlinks is not None
    assert gpu.nvlinks[1] == NvLink(index=1, errors={"active": "ERR!"})


def test_list_of_gpus(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, "".join(f"GPU {n}: NVIDIA Test (UUID: {UUID.format(n)})\n" for n in range(3)))
    assert [gpu.uuid for gpu in gpus.devices] == [UUID.format(n) for n in range(3)]
    assert gpus.devices[0].errors["nvlinks"] == "not in nvidia-smi -L"
