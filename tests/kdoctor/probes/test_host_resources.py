"""NUMA, control groups, swap, governors and disks."""

import tarfile
import tempfile
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.corpus import recorded
from helpers.machine import context, write
from helpers.trees import Tree
from kdoctor.facts import Host, NumaNode
from kdoctor.probes.files import parse_list, parse_mask
from kdoctor.probes.host import collect

GIB = 1024**3


def read(root: Path, environ: dict[str, str] | None = None) -> Host:
    facts = collect(context(root, environ))[Host]
    assert isinstance(facts, Host)
    return facts


def test_two_sockets_have_two_numa_nodes(tmp_path: Path) -> None:
    Tree(cpus=8, memory_bytes=64 * GIB).write(tmp_path)
    facts = read(tmp_path)
    assert (facts.cpus, facts.cpu_limit, facts.cpu_affinity, facts.memory_nodes) == (8, 8.0, tuple(range(8)), (0, 1))
    assert facts.numa_nodes == (
        NumaNode(index=0, cpus=(0, 1, 2, 3), memory_total_bytes=32 * GIB, socket=0),
        NumaNode(index=1, cpus=(4, 5, 6, 7), memory_total_bytes=32 * GIB, socket=1),
    )
    assert (facts.memory_total_bytes, facts.swap_total_bytes, facts.swap_used_bytes) == (64 * GIB, 0, 0)
    assert (facts.cpu_governors, facts.transparent_hugepages, facts.container) == (("performance",), "madvise", "none")


def test_empty_root_leaves_resources_unknown(tmp_path: Path) -> None:
    facts = read(tmp_path)
    assert (facts.cpu_limit, facts.memory_nodes, facts.numa_nodes, facts.swap_total_bytes) == (None, None, None, None)
    assert (facts.cpu_governors, facts.transparent_hugepages) == (None, None)


@cases(
    ("0::/a/b", {"sys/fs/cgroup/a/b/cpu.max": "max 100000"}, 8.0),
    ("0::/a/b", {"sys/fs/cgroup/a/b/cpu.max": "250000 100000"}, 2.5),
    ("0::/a/b", {"sys/fs/cgroup/a/cpu.max": "150000 100000", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, 1.5),
    ("0::/", {"sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),
    ("0::/../../the/hosts/path", {"sys/fs/cgroup/cpu.max": "400000 100000"}, 4.0),
    (
        "4:cpu,cpuacct:/job\n1:name=systemd:/",
        {"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "300000", "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000"},
        3.0,
    ),
    (
        "4:cpu,cpuacct:/job",
        {"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000"},
        8.0,
    ),
    ("0::/a", {"sys/fs/cgroup/a/cpu.max": "9900000 100000"}, 8.0),
)
def test_cgroup_cpu_limit(tmp_path: Path, groups: str, files: dict[str, str], limit: float) -> None:
    Tree(cpus=8, files={"proc/self/cgroup": groups, **files}).write(tmp_path)
    assert read(tmp_path).cpu_limit == limit


def test_memory_only_nodes(tmp_path: Path) -> None:
    files = {"sys/devices/system/node/node255/cpulist": "\n", "sys/devices/system/node/node255/meminfo": ""}
    Tree(cpus=4, sockets=1, files=files).write(tmp_path)
    nodes = read(tmp_path).numa_nodes
    assert nodes is not None
    assert nodes[-1] == NumaNode(index=255, cpus=())


def test_memory_and_swap_are_read(tmp_path: Path) -> None:
    write(tmp_path, proc__meminfo="MemTotal: 100 kB\nMemAvailable: 40 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n")
    facts = read(tmp_path)
    assert (facts.memory_total_bytes, facts.memory_available_bytes) == (100 * 1024, 40 * 1024)
    assert (facts.swap_total_bytes, facts.swap_used_bytes) == (2048 * 1024, 1024 * 1024)


def test_governors_are_those_of_the_affinity(tmp_path: Path) -> None:
    files = {
        "proc/self/status": "Cpus_allowed_list:\t0-1\n",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave",
        "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "schedutil",
    }
    Tree(cpus=4, files=files).write(tmp_path)
    assert read(tmp_path).cpu_governors == ("performance", "powersave")


def test_virtual_machine_has_no_governors(tmp_path: Path) -> None:
    write(tmp_path, sys__devices__system__cpu__online="0-1", proc__self__status="Cpus_allowed_list:\t0-1\n")
    assert read(tmp_path).cpu_governors == ()


def test_working_and_temporary_folder_have_disks(tmp_path: Path) -> None:
    facts = read(tmp_path, {"TMPDIR": str(tmp_path)})
    assert [disk.folder for disk in facts.disks] == ["working folder", "temporary folder"]
    assert all(0 <= disk.free_bytes <= disk.total_bytes for disk in facts.disks)


def test_missing_folder_has_no_disk(tmp_path: Path) -> None:
    facts = read(tmp_path, {"TMPDIR": str(tmp_path / "gone")})
    assert [disk.folder for disk in facts.disks] == ["working folder"]


def test_limits_by_name(tmp_path: Path) -> None:
    facts = read(tmp_path)
    limit = facts.limit("nofile")
    assert limit is not None
    assert limit.name == "nofile"
    assert facts.limit("beer") is None


@cases(
    ("0-3,8", (0, 1, 2, 3, 8)),
    ("", ()),
    ("5", (5,)),
    ("0-", None),
    ("N/A", None),
    ("0-3,x", None),
    ("0-99999999999", None),
    ("0-" + "9" * 5000, None),
)
def test_lists(text: str, numbers: tuple[int, ...] | None) -> None:
    assert parse_list(text) == numbers


@cases(("0", ()), ("f", (0, 1, 2, 3)), ("00000001,00000000", (32,)), ("none", None))
def test_masks(text: str, numbers: tuple[int, ...] | None) -> None:
    assert parse_mask(text) == numbers


@pytest.mark.corpus
@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python cannot unpack archives safely")
def test_power9_gpu_memory_is_a_numa_node(tmp_path: Path) -> None:
    with tarfile.open(recorded("pci/power9-v100-sysfs.tar.bz2")) as archive:
        members = [item for item in archive if "/system/" in item.name or "/proc/" in item.name]
        archive.extractall(tmp_path, members=members, filter="data")
    nodes = read(tmp_path / "nvidiagpunumanodes").numa_nodes
    assert nodes is not None
    assert [node.index for node in nodes] == [0, 8, 250, 251, 252, 253, 254, 255]
    assert [node.index for node in nodes if not node.cpus] == [250, 251, 252, 253, 254, 255]
    assert {node.socket is None for node in nodes if node.cpus} == {False}


def test_working_folder_is_read_without_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates a container with a read-only file system, in which Python's tempfile raises an error."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    assert [disk.folder for disk in read(tmp_path).disks] == ["working folder"]
