from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import TOPOLOGY, group, imported, imported_gpus, query
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus

P2P = " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n"


def test_levels_links_and_affinities(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, TOPOLOGY)
    assert gpus.count == 3
    assert [(pair.first, pair.second, pair.level, pair.nvlinks) for pair in gpus.pairs] == [
        (0, 1, None, 12),
        (0, 2, "SYS", 0),
        (1, 2, "PHB", 0),
    ]
    assert "NV12" in (gpus.pairs[0].error or "")
    assert [gpu.cpu_affinity for gpu in gpus.devices] == [(0, 1, 2, 3, 8, 9, 10, 11)] * 2 + [(4, 5, 6, 7)]
    assert [gpu.numa_affinity for gpu in gpus.devices] == [(0,), (0, 1), None]
    assert [gpu.gpu_numa_id for gpu in gpus.devices] == [None, 2, None]
    assert gpus.devices[2].errors["numa_affinity"] == "N/A"


def test_matrix_of_pci_does_not_show_nvlinks(tmp_path: Path) -> None:
    matrix = TOPOLOGY.replace("NV12", "SYS")
    assert {pair.nvlinks for pair in imported_gpus(tmp_path, f"$ nvidia-smi topo -m\n{matrix}").pairs} == {0}
    assert {pair.nvlinks for pair in imported_gpus(tmp_path, f"$ nvidia-smi topo -mp\n{matrix}").pairs} == {None}


def test_matrix_with_spaces_and_colors(tmp_path: Path) -> None:
    text = "\n".join(line.expandtabs(8) for line in TOPOLOGY.splitlines()) + "\n"
    coloured = text.replace("GPU0", "\x1b[4mGPU0", 1).replace("NUMA ID", "NUMA ID\x1b[0m", 1)
    assert imported_gpus(tmp_path, coloured) == imported_gpus(tmp_path, TOPOLOGY)


def test_truncated_matrix(tmp_path: Path) -> None:
    found = imported(tmp_path, TOPOLOGY[: TOPOLOGY.index("GPU1\tNV12\t X \tPHB") + len("GPU1\tNV1")])
    gpus = group(found.facts, Gpus)
    assert [(pair.level, pair.nvlinks) for pair in gpus.pairs] == [(None, 12), ("SYS", 0), (None, None)]
    assert [note.rpartition(" after ")[2] for note in found.notes] == ["2 of 3 rows"]


def test_quotation_mark_behind_a_cell_is_no_part_of_it(tmp_path: Path) -> None:
    row = "GPU1\tNV12\t X \tPHB"
    gpus = imported_gpus(tmp_path, f'{TOPOLOGY.partition(row)[0]}{row}"\n```\n')
    assert [(pair.level, pair.nvlinks) for pair in gpus.pairs] == [(None, 12), ("SYS", 0), ("PHB", 0)]


def test_matrix_without_command_assumes_rw(tmp_path: Path) -> None:
    found = imported(tmp_path, P2P)
    gpus = group(found.facts, Gpus)
    assert (gpus.pairs[0].p2p_read, gpus.pairs[0].p2p_write, gpus.pairs[0].p2p_nvlink) == ("GNS", "GNS", None)
    assert [note.rpartition(" ")[2] for note in found.notes] == ["rw"]


def test_other_capability_is_ignored(tmp_path: Path) -> None:
    found = imported(tmp_path, query("3B", "AF"), f"$ nvidia-smi topo -p2p a\n{P2P}")
    gpus = group(found.facts, Gpus)
    assert (gpus.pairs[0].p2p_read, gpus.pairs[0].p2p_write) == (None, None)
    (note,) = found.notes
    assert note.startswith("file-1: nvidia-smi topo -p2p a ")


def test_rows_without_the_header(tmp_path: Path) -> None:
    rows = TOPOLOGY.split("\n", 2)[2]
    found = imported(tmp_path, f"GPU Topology:\n{rows}")
    gpus = group(found.facts, Gpus)
    assert gpus.pairs == imported_gpus(tmp_path, TOPOLOGY).pairs
    assert (gpus.count, [gpu.numa_affinity for gpu in gpus.devices]) == (None, [None] * 3)
    with pytest.raises(UsageError):
        imported(tmp_path, "GPU2\tNV12\t X \tPHB\n")  # the diagonal is in another column


def test_range_of_cpus_is_bounded(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, TOPOLOGY.replace("4-7", "4-99999999"))
    assert gpus.devices[2].errors["cpu_affinity"] == "4-99999999"


def test_matrix_of_one_gpu_has_no_pairs(tmp_path: Path) -> None:
    found = imported(tmp_path, "\tGPU0\tCPU Affinity\nGPU0\t X \t0-13\n")
    gpus = group(found.facts, Gpus)
    assert (gpus.count, gpus.pairs, found.notes) == (1, (), ())


@cases(
    (("OK", "OK"), ("OK", None)),
    (("OK", "GNS"), ("GNS", None)),
    (("TNS", "OK"), ("TNS", None)),
    (("OK", "??"), (None, "??")),
    (("??", "OK"), (None, "??")),
)
def test_access_of_each_pair(tmp_path: Path, cells: tuple[str, str], found: tuple[str | None, str | None]) -> None:
    there, back = cells
    text = f" \tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\t{there}\n GPU1\tOK\tX\tCNS\n GPU2\t{back}\tCNS\tX\n"
    pairs = {(pair.first, pair.second): pair for pair in imported_gpus(tmp_path, text).pairs}
    assert (pairs[0, 1].p2p_read, pairs[1, 2].p2p_read) == ("OK", "CNS")
    assert (pairs[0, 2].p2p_read, pairs[0, 2].errors.get("p2p_read")) == found


@cases(("0", (0,)), ("0-1", (0, 1)), ("5,7", (5, 7)), ("3-4,8", (3, 4, 8)), ("0-", None))
def test_set_of_cpus(tmp_path: Path, affinity: str, cpus: tuple[int, ...] | None) -> None:
    (gpu,) = imported_gpus(tmp_path, f"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t{affinity}\t1\n").devices
    assert (gpu.cpu_affinity, gpu.numa_affinity) == (cpus, (1,))
    assert gpu.errors.get("cpu_affinity") == (None if cpus else affinity)


@pytest.mark.parametrize(("cell", "level"), [("PIX", "PIX"), ("PXB", "PXB"), ("NODE", "NODE"), ("SOC", "SYS")])
def test_level_of_a_pair(tmp_path: Path, cell: str, level: str) -> None:
    (pair,) = imported_gpus(tmp_path, f"\tGPU0\tGPU1\nGPU0\t X \t{cell}\nGPU1\t{cell}\t X \n").pairs
    assert (pair.level, pair.nvlinks, pair.error) == (level, 0, None)
