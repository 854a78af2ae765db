from pathlib import Path

from helpers.cases import cases
from helpers.machine import context, write
from kdoctor.facts import KernelDriver, Unavailable
from kdoctor.probes.kernel import collect, parse_version

PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\nGCC version:  12\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build  (builder@host)  Tue Sep 23\n"
)


def read(root: Path) -> KernelDriver:
    facts = collect(context(root))[KernelDriver]
    assert isinstance(facts, KernelDriver), facts
    return facts


@cases((PROPRIETARY, "535.161.08", "proprietary"), (OPEN, "580.95.05", "open"), ("", None, None), ("NVRM", None, None))
def test_driver_version_is_parsed(text: str, version: str | None, flavour: str | None) -> None:
    assert parse_version(text) == (version, flavour)


def test_loaded_module(tmp_path: Path) -> None:
    write(tmp_path, proc__driver__nvidia__version=PROPRIETARY, sys__module__nvidia__version="535.161.08\n")
    facts = read(tmp_path)
    assert (facts.loaded, facts.version, facts.flavour) == (True, "535.161.08", "proprietary")


def test_sysfs_module_without_proc_file_is_loaded(tmp_path: Path) -> None:
    write(tmp_path, sys__module__nvidia__version="550.54.15\n")
    facts = read(tmp_path)
    assert (facts.loaded, facts.version, facts.flavour) == (True, "550.54.15", None)


def test_unparseable_version_is_none(tmp_path: Path) -> None:
    write(tmp_path, proc__driver__nvidia__version="something new\n")
    facts = read(tmp_path)
    assert (facts.loaded, facts.version, facts.flavour) == (True, None, None)


def test_driver_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "sys/module").mkdir(parents=True)
    assert read(tmp_path) == KernelDriver(loaded=False)


def test_system_without_proc_and_sys_is_unavailable(tmp_path: Path) -> None:
    assert isinstance(collect(context(tmp_path))[KernelDriver], Unavailable)


def test_unreadable_version_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia/version").mkdir(parents=True)
    facts = collect(context(tmp_path))[KernelDriver]
    assert isinstance(facts, Unavailable)
    assert "cannot be read" in facts.unavailable


def test_device_nodes_have_their_permissions(tmp_path: Path) -> None:
    write(tmp_path, sys__module__nvidia__version="1.0", dev__nvidia0="", dev__nvidiactl="", dev__null="")
    (tmp_path / "dev/nvidia-caps").mkdir()
    (tmp_path / "dev/nvidia0").chmod(0o666)
    (tmp_path / "dev/nvidiactl").chmod(0o400)
    nodes = read(tmp_path).nodes
    assert nodes is not None
    assert [(node.path, node.mode) for node in nodes] == [("/dev/nvidia0", "0666"), ("/dev/nvidiactl", "0400")]
    assert nodes[0].readable
    assert nodes[0].writable
    assert nodes[1].readable


def test_broken_device_node_is_excluded(tmp_path: Path) -> None:
    write(tmp_path, sys__module__nvidia__version="1.0", dev__nvidia0="")
    (tmp_path / "dev/nvidia1").symlink_to(tmp_path / "gone")
    assert [node.path for node in read(tmp_path).nodes or ()] == ["/dev/nvidia0"]
