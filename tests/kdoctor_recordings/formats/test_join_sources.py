"""Several dumps of one machine: which dump a value is from, and which differences are contradictions."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import (
    LOG,
    LSPCI,
    NVLINK,
    TABLE,
    TOPOLOGY,
    group,
    imported,
    imported_gpus,
    imported_pci,
    query,
)
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, KernelDriver, KernelLog
from kdoctor_recordings.facts import Diagnostics
from kdoctor_recordings.formats.part import CUT

TABLE_535 = TABLE.replace(
    "KMD Version: 610.43.02     CUDA UMD Version: 13.3", "Driver Version: 535.161.08 CUDA Version: 12.2"
)
LOST = "Unable to determine the device handle for GPU 0000:{}:00.0: GPU is lost.  Reboot the system to recover\n"
VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.57.04  Release Build  (dvs-builder@U16)\n"
DRIVER_610 = "KMD Version : {0}\nCUDA UMD Version : 13.3"
XID = "[  300.000000] NVRM: Xid (PCI:0000:99:00): {}, pid=7, name=python\n"


@pytest.mark.parametrize("swapped", [False, True])
def test_number_of_attached_gpus_counts_before_the_number_of_listed_ones(tmp_path: Path, *, swapped: bool) -> None:
    """``nvidia-smi -q`` counts a GPU that does not answer, which the table leaves out."""
    whole = query("3B", "AF", attached=3, versions="Driver Version : 535.161.08") + LOST.format("D8")
    texts = [TABLE_535, whole] if swapped else [whole, TABLE_535]
    gpus = imported_gpus(tmp_path, *texts)
    assert (gpus.count, gpus.cuda_driver_version) == (3, "12.2")
    assert gpus.devices[0].temperature_c == 61  # in the table 40
    assert [(gpu.index, gpu.bus_id) for gpu in gpus.devices] == [
        (0, "0000:3b:00.0"),
        (1, "0000:af:00.0"),
        (2, "0000:d8:00.0"),
    ]


@cases(
    (("3B", "AF"), (), True),
    (("3B", "AF"), ("D8", "D9"), True),
    (("3B",), ("AF",), True),
    (("3B",), (), False),
    (("3B", "AF", "D8"), (), False),
    (("3B", "AF", "D8"), ("D9",), False),
)
@pytest.mark.parametrize("swapped", [False, True])
def test_table_lists_at_least_the_gpus_that_answer_and_at_most_all(
    tmp_path: Path, *, swapped: bool, answering: tuple[str, ...], lost: tuple[str, ...], is_possible: bool
) -> None:
    whole = query(*answering, attached=len(answering) + len(lost)) + "".join(map(LOST.format, lost))
    texts = [TABLE_535, whole] if swapped else [whole, TABLE_535]
    if is_possible:
        assert imported_gpus(tmp_path, *texts).count == len(answering) + len(lost)
        return
    with pytest.raises(UsageError, match=f"(?=.*{len(answering) + len(lost)})(?=.*2).* GPUs and "):
        imported(tmp_path, *texts)


def test_index_that_was_not_read_is_never_shown(tmp_path: Path) -> None:
    first = TABLE_535.partition("|   1  NVIDIA Very")[0]
    found = imported(tmp_path, query("AF", attached=2), first)
    gpus = group(found.facts, Gpus)
    assert [(gpu.index, gpu.bus_id) for gpu in gpus.devices] == [(0, "0000:3b:00.0"), (1, "0000:af:00.0")]
    assert [gpu.subject for gpu in gpus.devices] == ["GPU 0 (0000:3b:00.0)", "GPU at 0000:af:00.0"]
    assert [pair.subject for pair in gpus.pairs] == ["GPU 0 (0000:3b:00.0) - GPU at 0000:af:00.0"]
    assert any("no index of 1 GPU" in note for note in found.notes)


def test_reason_of_a_missing_value_says_whether_all_dumps_are_cut_off(tmp_path: Path) -> None:
    whole = query("3B")
    cut = whole[: whole.index("    Remapped Rows")]
    assert imported_gpus(tmp_path, cut).devices[0].errors["nvlinks"] == CUT
    assert imported_gpus(tmp_path, cut, cut).devices[0].errors["nvlinks"] == CUT
    for texts in ((cut, whole), (whole, cut)):
        gpu = imported_gpus(tmp_path, *texts).devices[0]
        assert (gpu.remapped_rows_pending, gpu.errors["nvlinks"]) == (True, "not in nvidia-smi -q")


def test_only_a_complete_query_shows_that_the_driver_lacks_an_entry(tmp_path: Path) -> None:
    whole = query("3B")
    memory = whole.partition("    Product Name")[0] + "    FB Memory Usage\n        Total : 40960 MiB\n\n"
    for texts, reason in (
        ((whole,), "not reported by this driver"),
        ((memory,), "not in nvidia-smi -q"),
        ((whole, memory), "not reported by this driver"),
        ((memory, whole), "not reported by this driver"),
        ((whole[: whole.index("    Remapped Rows")],), CUT),
    ):
        assert imported_gpus(tmp_path, *texts).devices[0].errors["unrepairable_memory"] == reason


P2P = " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"
TWO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-13\nGPU1\tNV12\t X \t14-27\n"


def test_pair_has_the_values_of_all_dumps(tmp_path: Path) -> None:
    (pair,) = imported_gpus(tmp_path, TWO, f"$ nvidia-smi topo -p2p w\n{P2P}").pairs
    assert (pair.level, pair.nvlinks, pair.p2p_write, pair.p2p_read) == (None, 12, "OK", None)
    assert pair.errors.keys() == {"p2p_read", "p2p_nvlink"}
    assert pair.error == "topo -m shows NV12 instead"


def test_version_of_the_module_is_that_of_all_dumps(tmp_path: Path) -> None:
    smi = query("3B", versions=DRIVER_610.format("610.57.04"))
    for texts in ((VERSION, smi), (smi, VERSION), (VERSION, VERSION)):
        driver = imported(tmp_path, *texts).facts[KernelDriver]
        assert driver == KernelDriver(loaded=True, version="610.57.04", flavour="open", nodes=None)
    assert imported(tmp_path, smi, smi).facts[KernelDriver] == KernelDriver(
        loaded=True, version="610.57.04", nodes=None
    )
    for texts in (
        (VERSION, query("3B", versions=DRIVER_610.format("610.43.02"))),
        (VERSION, VERSION.replace("57", "43")),
    ):
        with pytest.raises(UsageError, match=r"kernel module 610\.57\.04 and 610\.43\.0"):
            imported(tmp_path, *texts)


def test_version_that_the_module_does_not_show_is_that_of_nvidia_smi(tmp_path: Path) -> None:
    unknown = "NVRM version: something else\n"
    assert imported(tmp_path, unknown).facts[KernelDriver] == KernelDriver(loaded=True, version=None, nodes=None)
    known = query("3B", versions=DRIVER_610.format("610.57.04"))
    for texts in ((unknown, known), (known, unknown), (unknown, VERSION)):
        driver = group(imported(tmp_path, *texts).facts, KernelDriver)
        assert driver.version == "610.57.04"


def test_last_listing_of_lspci_counts(tmp_path: Path) -> None:
    moved = LSPCI.replace("\tNUMA node: 1\n\tIOMMU", "\tNUMA node: 0\n\tIOMMU")
    for texts, node in (((LSPCI, moved), 0), ((moved, LSPCI), 1), ((moved, LSPCI.replace("3b:", "3c:")), None)):
        if node is None:
            with pytest.raises(UsageError, match="different addresses"):
                imported(tmp_path, *texts)
        else:
            assert imported_pci(tmp_path, *texts).gpus[0].numa_node == node


@cases(
    ((query("3B"),), 31, False),
    ((query("3B", attached=2),), 31, True),  # the GPU may be the one that is not listed
    ((query("3B", attached=2), LSPCI), 31, False),  # lspci lists all
    ((LSPCI,), 31, False),
    ((TOPOLOGY,), 31, True),  # GPUs without addresses
    ((LSPCI[: LSPCI.index("3b:00.0")],), 31, True),
    *(((query("3B"),), code, True) for code in (79, 119, 120, 143, 154)),
)
def test_log_may_name_other_gpus_only_if_they_may_be_missing(
    tmp_path: Path, dumps: tuple[str, ...], code: int, *, is_possible: bool
) -> None:
    for texts in ((*dumps, LOG + XID.format(code)), (LOG.replace("79,", "31,"), *dumps, XID.format(code))):
        if is_possible:
            assert KernelLog in imported(tmp_path, *texts).facts
        else:
            with pytest.raises(UsageError, match=r"0000:99:00\.0") as error:
                imported(tmp_path, *texts)
            assert f"file-{len(texts) - 1} " in str(error.value)


def test_logs_are_counted_together(tmp_path: Path) -> None:
    for texts, lines in (((LOG,), 3), ((LOG, LOG), 6), ((LOG, XID.format(79)), 4)):
        log = group(imported(tmp_path, *texts).facts, KernelLog)
        assert log.lines == lines
        assert log.source == ", ".join(f"file-{place}" for place in range(len(texts)))


def test_diagnosis_without_results_was_run_all_the_same(tmp_path: Path) -> None:
    found = imported(tmp_path, '{"DCGM Diagnostic": {"test_categories": []}}\n').facts
    assert found == {Diagnostics: Diagnostics(results=())}


def test_lines_of_a_gpu_and_of_the_file_are_counted_together(tmp_path: Path) -> None:
    text = query("3B", changes={"    Compute Mode": "    Frobnication : 7\n    Compute Mode"})
    found = imported(tmp_path, text, f"{NVLINK}Frobnication of GPU 0 failed\nand again\n")
    assert sorted(note.rpartition(": ")[2].partition(" not")[0] for note in found.notes) == [
        "1 line was",
        "2 lines were",
    ]


def test_note_names_three_files_with_unknown_lines(tmp_path: Path) -> None:
    (note,) = imported(tmp_path, *[f"{NVLINK}Frobnication of GPU 0 failed\n"] * 5).notes
    assert [f"file-{place}" in note for place in range(5)] == [True] * 3 + [False] * 2
    assert "5 lines" in note
