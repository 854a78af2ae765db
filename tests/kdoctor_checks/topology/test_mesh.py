"""NVLinks of all pairs: a GPU unlike its equals, meshes with gaps, and links that a listing shows."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import UUID, imported_gpus
from kdoctor.engine.report import Result
from kdoctor.facts import Gpus
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.nvlink import nvlink
from kdoctor_checks.topology.nvlink_direct import nvlink_direct
from kdoctor_checks.topology.pairs import pairs


def matrix(*rows: str) -> str:
    """``nvidia-smi topo -m`` with these cells."""
    names = [f"GPU{index}" for index in range(len(rows))]
    head = "\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = ["\t".join([name, *row.split(), "0-31", "0", "N/A"]) for name, row in zip(names, rows, strict=True)]
    return "\n".join([head, *lines, "", "Legend:", ""])


def switched(links: Sequence[int], without: str = "NODE") -> str:
    """A machine with NVSwitches: each pair has as many links as the GPU with fewer."""

    def cell(one: int, other: int) -> str:
        count = min(links[one], links[other])
        return "X" if one == other else f"NV{count}" if count else without

    indices = range(len(links))
    return matrix(*(" ".join(cell(one, other) for other in indices) for one in indices))


def listing(name: str, links: Sequence[int | None], total: int = 18) -> str:
    """``nvidia-smi nvlink -s``: the number of active links of each GPU; None if all are inactive."""
    text = ""
    for index, active in enumerate(links):
        text += f"GPU {index}: {name} (UUID: {UUID.format(index)})\n"
        if active is None:
            text += "NVML: Unable to retrieve NVLink information as all links are inActive\n"
        else:
            text += "".join(
                f"\t Link {link}: {'50 GB/s' if link < active else '<inactive>'}\n" for link in range(total)
            )
    return text + "\n"


CUBE = (
    "X NV1 NV1 NV2 NV2 SYS SYS SYS",
    "NV1 X NV2 NV1 SYS NV2 SYS SYS",
    "NV1 NV2 X NV2 SYS SYS NV1 SYS",
    "NV2 NV1 NV2 X SYS SYS SYS NV1",
    "NV2 SYS SYS SYS X NV1 NV1 NV2",
    "SYS NV2 SYS SYS NV1 X NV2 NV1",
    "SYS SYS NV1 SYS NV1 NV2 X NV2",
    "SYS SYS SYS NV1 NV2 NV1 NV2 X",
)
"""The hybrid cube mesh of a DGX-1 (six links for each GPU), as NVIDIA's documentation draws it."""
GROUPS = tuple(
    " ".join("X" if one == other else "NV3" if one // 2 == other // 2 else "SYS" for other in range(4))
    for one in range(4)
)
"""A POWER machine: two GPUs of each processor are linked."""


def found(result: Result) -> dict[str, str]:
    return {item.finding.subject: item.finding.observed for item in result.findings}


@cases(
    ([18, 18, 0, 18, 18, 18, 18, 18], "GPU 2", "0 of 18 NVLinks active; 7 other GPUs have 18"),
    ([18, 17, 18, 18, 18, 18, 18, 18], "GPU 1", "17 of 18 NVLinks active; 7 other GPUs have 18"),
    ([0, 18, 18, 18], "GPU 0", "0 of 18 NVLinks active; 3 other GPUs have 18"),
    ([12, 12, 12, 0], "GPU 3", "0 of 12 NVLinks active; 3 other GPUs have 12"),
)
def test_gpu_unlike_its_equals_fails(tmp_path: Path, links: Sequence[int], subject: str, observed: str) -> None:
    gpus = imported_gpus(tmp_path, switched(links))
    assert found(compute_check(nvlink, gpus)) == {subject: observed}


def test_pairs_without_nvlink_are_explained_by_the_gpu_that_lost_its_links(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, switched([18, 18, 18, 18, 18, 18, 0, 18], without="SYS"))
    result = compute_check(pairs, gpus)
    assert len(result.findings) == 7
    assert {item.finding.explained_by for item in result.findings} == {("topology.nvlink", "topology.nvlink-direct")}


def test_equal_gpus_are_not_judged_by_their_pairs(tmp_path: Path) -> None:
    """All of them may have lost the same links, so their number is unknown."""
    for links in ([18] * 8, [17] * 8):
        result = compute_check(nvlink, imported_gpus(tmp_path, switched(links)))
        assert (result.status, result.findings) == (Status.UNKNOWN, ())


def test_fifth_gpu_of_a_workstation_may_drive_the_display(tmp_path: Path) -> None:
    result = compute_check(nvlink, imported_gpus(tmp_path, switched([4, 4, 4, 0, 4])))
    assert result.findings == ()


def test_two_bridged_cards_do_not_make_others_faulty(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, matrix("X NV4 PHB PHB", "NV4 X PHB PHB", "PHB PHB X PHB", "PHB PHB PHB X"))
    assert compute_check(nvlink, gpus).findings == ()
    assert compute_check(nvlink_direct, gpus).findings == ()


@pytest.mark.parametrize(("rows", "links"), [(CUBE, 6), (GROUPS, 3)])
def test_gaps_of_a_mesh_are_no_fault(rows: Sequence[str], links: int, tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, matrix(*rows))
    result = compute_check(pairs, gpus)
    assert (result.status, result.findings) == (Status.PASS, ())
    gaps = [item.observed for item in result.evidence if item.observed.startswith("SYS")]
    assert len(gaps) == sum(row.count("SYS") for row in rows) // 2
    assert all(f"{links} NVLinks" in gap for gap in gaps)
    near = len(result.evidence) - len(gaps)
    assert {item.brief.rpartition(" between ")[2] for item in result.evidence} == {
        "",
        f"{near} of {len(result.evidence)} pairs",
    }
    assert compute_check(nvlink, gpus).findings == ()


def test_lost_connection_of_a_mesh_warns_about_its_two_ends(tmp_path: Path) -> None:
    broken: list[str] = [*CUBE]
    broken[3], broken[7] = "NV2 NV1 NV2 X SYS SYS SYS SYS", "SYS SYS SYS SYS NV2 NV1 NV2 X"
    gpus = imported_gpus(tmp_path, matrix(*broken))
    observed = "5 of 6 NVLinks active; 6 other GPUs have 6"
    assert found(compute_check(nvlink_direct, gpus)) == {"GPU 3": observed, "GPU 7": observed}
    assert list(found(compute_check(pairs, gpus))) == ["GPU 3 - GPU 7"]


def test_pairs_of_sockets_without_any_nvlink_still_warn(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, matrix("X PHB SYS SYS", "PHB X SYS SYS", "SYS SYS X PHB", "SYS SYS PHB X"))
    assert len(compute_check(pairs, gpus).findings) == 4


@cases("NVIDIA B200", "NVIDIA B300 SXM6 AC", "NVIDIA GB200", "NVIDIA GB300", "NVIDIA H200", "NVIDIA X1000")
@pytest.mark.parametrize(("links", "observed"), [(None, "0 of 18 NVLinks active"), (16, "16 of 18 NVLinks active")])
def test_module_without_some_links_fails_whatever_its_name(
    links: int | None, observed: str, tmp_path: Path, name: str
) -> None:
    gpus = imported_gpus(tmp_path, listing(name, [18, 18, 18, links]))
    ((subject, text),) = found(compute_check(nvlink, gpus)).items()
    assert subject == "GPU 3"
    assert text.startswith(observed)


@pytest.mark.parametrize("name", ["NVIDIA B200", "NVIDIA GB300", "NVIDIA H100 80GB HBM3", "NVIDIA X1000"])
def test_modules_without_any_link_fail(name: str, tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, listing(name, [None] * 4))
    assert len(found(compute_check(nvlink, gpus))) == 4


@cases("NVIDIA GeForce RTX 3090", "NVIDIA RTX A6000", "NVIDIA A100 80GB PCIe", "NVIDIA H100 NVL", "NVIDIA A40")
def test_cards_without_bridges_are_skipped(tmp_path: Path, name: str) -> None:
    gpus = imported_gpus(tmp_path, listing(name, [None, None]))
    assert compute_check(nvlink, gpus).status is Status.SKIP
    assert compute_check(nvlink_direct, gpus).status is Status.SKIP


def test_lone_grace_hopper_without_links_is_skipped(tmp_path: Path) -> None:
    alone = imported_gpus(tmp_path, listing("NVIDIA GH200 480GB", [None]))
    assert compute_check(nvlink, alone).status is Status.SKIP
    several: Gpus = imported_gpus(tmp_path, listing("NVIDIA GH200 144G HBM3e", [None, None]))
    assert compute_check(nvlink, several).status is Status.FAIL


def test_all_links_of_a_listing_are_active(tmp_path: Path) -> None:
    result = compute_check(nvlink, imported_gpus(tmp_path, listing("NVIDIA B300 SXM6 AC", [18] * 8)))
    assert (result.status, len(result.evidence)) == (Status.PASS, 8)
