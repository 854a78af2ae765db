"""NVLinks of all pairs: a GPU unlike its equals, meshes with gaps, and links that a listing shows."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from helpers.kdoctor_recordings.dumps import UUID, imported_gpus
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import Gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
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


def seen(text: str) -> Gpus:
    """The GPUs that this output shows."""
    with TemporaryDirectory() as folder:
        return imported_gpus(Path(folder), text)


WITHOUT_ONE = seen(switched([18, 18, 18, 18, 18, 18, 0, 18], without="SYS"))
BRIDGED = seen(matrix("X NV4 PHB PHB", "NV4 X PHB PHB", "PHB PHB X PHB", "PHB PHB PHB X"))
BROKEN = seen(matrix(*CUBE[:3], "NV2 NV1 NV2 X SYS SYS SYS SYS", *CUBE[4:7], "SYS SYS SYS SYS NV2 NV1 NV2 X"))
SOCKETS = seen(matrix("X PHB SYS SYS", "PHB X SYS SYS", "SYS SYS X PHB", "SYS SYS PHB X"))
MODULES = ("NVIDIA B200", "NVIDIA B300 SXM6 AC", "NVIDIA GB200", "NVIDIA GB300", "NVIDIA H200", "NVIDIA X1000")
CARDS = tuple(
    seen(listing(name, [None, None]))
    for name in (
        "NVIDIA GeForce RTX 3090", "NVIDIA RTX A6000", "NVIDIA A100 80GB PCIe", "NVIDIA H100 NVL", "NVIDIA A40"
    )
)  # fmt: skip

test_nvlink = table(
    "topology.nvlink",
    Severity.ERROR,
    *(
        fails(seen(switched(links)), f"fail {odd} NVLinks active; {len(links) - 1} other GPUs have {max(links)}.", of=1)
        for links, odd in (
            ([18, 18, 0, 18, 18, 18, 18, 18], "GPU 2: 0 of 18"),
            ([18, 17, 18, 18, 18, 18, 18, 18], "GPU 1: 17 of 18"),
            ([0, 18, 18, 18], "GPU 0: 0 of 18"),
            ([12, 12, 12, 0], "GPU 3: 0 of 12"),
        )
    ),
    # Equal GPUs are not judged by their pairs: all of them may have lost the same links.
    *(unknown(seen(switched([links] * 8)), of=8) for links in (18, 17)),
    unknown(seen(switched([4, 4, 4, 0, 4])), of=5),  # the fifth GPU of a workstation may drive the display
    unknown(BRIDGED, of=4),
    *(unknown(seen(matrix(*mesh)), of=len(mesh)) for mesh in (CUBE, GROUPS)),
    *(
        fails(seen(listing(name, [18, 18, 18, links])), f"fail GPU 3: {links or 0} of 18 NVLinks active", of=1)
        for name in MODULES
        for links in (None, 16)
    ),
    *(fails(seen(listing(name, [None] * 4)), of=4) for name in (*MODULES, "NVIDIA H100 80GB HBM3")),
    *(skips(cards) for cards in CARDS),
    skips(seen(listing("NVIDIA GH200 480GB", [None]))),  # alone
    fails(seen(listing("NVIDIA GH200 144G HBM3e", [None, None])), of=2),
    passes(seen(listing("NVIDIA B300 SXM6 AC", [18] * 8)), of=8),
)
test_nvlink_direct = table(
    "topology.nvlink-direct",
    Severity.WARNING,
    unknown(BRIDGED, of=4),
    fails(BROKEN, *(f"fail GPU {end}: 5 of 6 NVLinks active; 6 other GPUs have 6." for end in (3, 7)), of=2),
    *(skips(cards) for cards in CARDS),
)
test_pairs = table(
    "topology.pairs",
    Severity.WARNING,
    fails(WITHOUT_ONE, explained_by=["topology.nvlink, topology.nvlink-direct"] * 7),
    fails(BROKEN, of=["GPU 3 - GPU 7"]),
    fails(SOCKETS, of=4),
)


@pytest.mark.parametrize(("rows", "links"), [(CUBE, 6), (GROUPS, 3)])
def test_gaps_of_a_mesh_are_no_fault(rows: Sequence[str], links: int) -> None:
    result = compute_check(pairs, seen(matrix(*rows)))
    assert (result.status, result.findings) == (Status.PASS, ())
    gaps = [item.observed for item in result.evidence if item.observed.startswith("SYS")]
    assert len(gaps) == sum(row.count("SYS") for row in rows) // 2
    assert all(f"{links} NVLinks" in gap for gap in gaps)
    near = len(result.evidence) - len(gaps)
    assert {item.brief.rpartition(" between ")[2] for item in result.evidence} == {
        "",
        f"{near} of {len(result.evidence)} pairs",
    }
