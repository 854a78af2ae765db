from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import LOG, LSPCI, NVLINK, UUID, group, imported, imported_gpus, query, xml
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, KernelDriver, KernelLog, PciDevices

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\n"
TWO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-13\nGPU1\tSYS\t X \t14-27\n"


def test_files_of_one_machine(tmp_path: Path) -> None:
    found = imported(tmp_path, LOG, TWO, NVLINK, LSPCI, query("3B", "AF"), VERSION)
    assert set(found.facts) == {Gpus, PciDevices, KernelLog, KernelDriver}
    gpus = group(found.facts, Gpus)
    assert len(gpus.devices) == 2
    gpu = gpus.devices[1]
    assert (gpu.bus_id, gpu.performance_state, gpu.cpu_affinity) == ("0000:af:00.0", 0, tuple(range(14, 28)))
    assert gpu.nvlinks is not None
    assert gpus.pairs[0].level == "SYS"
    assert gpus.pairs[0].errors["p2p_read"] == "not in nvidia-smi -q, nvidia-smi nvlink -s, nvidia-smi topo -m"


def test_selected_gpu_cannot_be_matched_with_matrix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be matched"):
        imported(tmp_path, query("AF", attached=2), TWO)


def test_selected_gpus_are_matched_with_list_of_gpus(tmp_path: Path) -> None:
    listed = f"GPU 0: NVIDIA Test 40GB (UUID: {UUID.format(9)})\nGPU 1: NVIDIA Test 40GB (UUID: {UUID.format(0)})\n"
    gpus = imported_gpus(tmp_path, query("AF", attached=2), TWO, listed)
    assert [(gpu.index, gpu.bus_id) for gpu in gpus.devices] == [(0, None), (1, "0000:af:00.0")]
    assert gpus.devices[1].cpu_affinity == tuple(range(14, 28))


def test_masked_identities_join_by_index(tmp_path: Path) -> None:
    zero = "GPU-00000000-0000-0000-0000-000000000000"
    text = query("3B", "AF").replace(UUID.format(0), zero).replace(UUID.format(1), zero)
    links = NVLINK.replace(UUID.format(0), zero).replace(UUID.format(1), zero)
    gpus = imported_gpus(tmp_path, text, links)
    assert [gpu.index for gpu in gpus.devices if gpu.nvlinks] == [0, 1]


def test_event_in_two_logs_counts_once(tmp_path: Path) -> None:
    log = group(
        imported(tmp_path, LOG, LOG + "[  300.000000] NVRM: Xid (PCI:0000:af:00): 48, pid=1, DBE\n").facts, KernelLog
    )
    assert [(event.code, event.bus_id) for event in log.events] == [(79, "0000:3b:00.0"), (48, "0000:af:00.0")]
    assert log.source == "file-0, file-1"


STRANGER = "[  100.000000] NVRM: Xid (PCI:0000:5e:00): 31, pid=7, name=python\n"


def test_log_is_not_compared_with_gpus_of_which_one_has_no_address(tmp_path: Path) -> None:
    masked = xml("3B", "AF").replace('id="00000000:AF:00.0"', 'id="N/A"')
    assert KernelLog in imported(tmp_path, STRANGER, masked).facts


def test_reason_of_a_dump_is_kept_until_another_has_the_value(tmp_path: Path) -> None:
    unread = query("3B", versions="Driver Version : N/A\nCUDA Version : 12.2")
    gpus = imported_gpus(tmp_path, unread)
    assert (gpus.errors["driver_version"], gpus.cuda_driver_version) == ("N/A", "12.2")
    assert "cuda_driver_version" not in gpus.errors
    gpus = imported_gpus(tmp_path, unread, query("3B"))
    assert gpus.driver_version == "535.161.08"
    assert "driver_version" not in gpus.errors


def test_missing_gpus_are_explained(tmp_path: Path) -> None:
    whole = imported_gpus(tmp_path, query("3B", attached=2)).errors["devices"]
    cut = imported_gpus(tmp_path, query("3B", attached=2)[:-150]).errors["devices"]
    assert whole.endswith("the others are not in it")
    assert cut.endswith("the output may be cut off")


@cases(
    "[  300.0] pcieport 0000:5d:00.0: AER: Multiple Corrected error received: 0000:5e:00.0",
    "[  300.0] nvidia 0000:5e:00.0: AER: aer_status: 0x00000001, aer_mask: 0x00000000",
    "[  300.0] NVRM: Xid 31, pid=7, name=python",
)
def test_only_an_xid_with_an_address_names_a_gpu(tmp_path: Path, line: str) -> None:
    found = imported(tmp_path, query("3B"), f"{LOG}{line}\n").facts
    assert set(found) >= {Gpus, KernelLog}
