"""Generate the /sys, /proc and /dev of a machine in a folder, from a short description.

The files have the format of Linux. Nothing is copied from a recorded machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

GIB = 1024**3
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
"""PCIe generation to GT/s."""

ACS_OFF, ACS_REDIRECT = 0x00, 0x1D
NO_ACS = None


@dataclass(frozen=True, kw_only=True)
class Slot:
    """An NVIDIA PCI function and the bridges above it."""

    path: str
    """From the root port to the function: ``15:01.0/16:00.0/17:00.0/19:00.0``."""
    node: int | None = 0
    """The NUMA node. None if the platform does not report it."""
    domain: int = 0
    device: str = "2330"
    device_class: str = "030200"
    driver: str | None = "nvidia"
    generation: int | None = 5
    generation_max: int = 5
    width: int | None = 16
    width_max: int = 16
    acs: int = ACS_OFF
    """ACS control of every bridge above the function."""
    lost: bool = False
    """Whether it has fallen off the bus. Its configuration space then reads as ones."""

    @property
    def bus_id(self) -> str:
        return f"{self.domain:04x}:{self.path.rpartition('/')[2]}"

    @property
    def bridges(self) -> list[str]:
        return [f"{self.domain:04x}:{name}" for name in self.path.split("/")[:-1]]

    @property
    def host_bridge(self) -> str:
        """``0000:15``: the root bus."""
        return f"{self.domain:04x}:{self.path[:2]}"


@dataclass(frozen=True, kw_only=True)
class Tree:
    """The files of a machine."""

    slots: tuple[Slot, ...] = ()
    sockets: int = 2
    cpus: int = 128
    memory_bytes: int = 1024 * GIB
    driver: str | None = "570.158.01"
    """Version of the kernel module. None if it is not loaded."""
    open_module: bool = True
    modules: tuple[str, ...] = ("nvidia", "nvidia_uvm", "nvidia_modeset")
    minors: tuple[int, ...] = ()
    """Numbers of the device nodes. By default one per GPU, in order."""
    node_mode: int = 0o666
    daemons: tuple[str, ...] = ("nvidia-persistenced",)
    iommu: str | None = None
    """Type of every IOMMU group. None without an IOMMU."""
    command_line: str = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet"
    log: tuple[str, ...] = ()
    """Lines of the kernel log after those of a healthy boot."""
    secure_boot: bool = False
    config_bytes: int = 4096
    """Readable bytes of a configuration space: 64 without root."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Additional and changed files."""

    def write(self, root: Path) -> Path:
        """Write the tree to the folder, and return the folder."""
        self._write_machine(root)
        self._write_numa(root)
        self._write_driver(root)
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        (root / "sys/kernel/iommu_groups").mkdir(parents=True)
        groups = iter(range(1, 1000))
        for slot in self.slots:
            self._write_slot(root, slot, groups.__next__())
        for name, text in self.files.items():
            _put(root, name, text)
        return root

    def changed(self, **changes: object) -> Tree:
        """The same with other values."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def node_cpus(self, node: int | None) -> str:
        """The CPU list of a NUMA node in the kernel's format. Each socket has one node."""
        if node is None:
            return f"0-{self.cpus - 1}"
        share = self.cpus // self.sockets
        return f"{node * share}-{(node + 1) * share - 1}"

    def _write_machine(self, root: Path) -> None:
        kib = self.memory_bytes // 1024
        status = f"Cpus_allowed_list:\t0-{self.cpus - 1}\nMems_allowed_list:\t0-{self.sockets - 1}\n"
        log = ("Linux version 6.8.0-60-generic", f"Command line: {self.command_line}", *self.log)
        files = {
            "proc/meminfo": f"MemTotal: {kib} kB\nMemFree: {kib} kB\nMemAvailable: {kib - 2**20} kB\n"
            "SwapTotal: 0 kB\nSwapFree: 0 kB\n",
            "proc/cmdline": self.command_line,
            "proc/modules": "".join(f"{name} 100 0 - Live 0x0\n" for name in ("ext4", *self.modules)),
            "proc/self/status": status,
            "proc/self/cgroup": "0::/user.slice/job.scope",
            "proc/self/mountinfo": "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw",
            "proc/1/cgroup": "0::/init.scope",
            "proc/1/comm": "systemd",
            "sys/fs/cgroup/user.slice/job.scope/cpu.max": "max 100000",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "sys/kernel/security/lockdown": "[integrity] none"
            if self.secure_boot
            else "[none] integrity confidentiality",
            "sys/firmware/efi/fw_platform_size": "64",
            "etc/os-release": 'PRETTY_NAME="Ubuntu 24.04.2 LTS"',
            "dev/kmsg": "".join(f"6,{number},{number * 1000000},-;{line}\n" for number, line in enumerate(log)),
            **{f"proc/{900 + i}/comm": name[:15] for i, name in enumerate(self.daemons)},
        }
        for name, text in files.items():
            _put(root, name, text)
        (root / "dev/shm").mkdir()
        variable = root / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        variable.parent.mkdir(parents=True)
        variable.write_bytes(bytes([6, 0, 0, 0, int(self.secure_boot)]))

    def _write_numa(self, root: Path) -> None:
        _put(root, "sys/devices/system/cpu/online", f"0-{self.cpus - 1}")
        for cpu in range(self.cpus):
            folder = f"sys/devices/system/cpu/cpu{cpu}"
            _put(root, f"{folder}/topology/physical_package_id", str(cpu * self.sockets // self.cpus))
            _put(root, f"{folder}/cpufreq/scaling_governor", "performance")
        for node in range(self.sockets):
            kib = self.memory_bytes // 1024 // self.sockets
            _put(root, f"sys/devices/system/node/node{node}/cpulist", self.node_cpus(node))
            _put(root, f"sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal:       {kib} kB")

    def _write_driver(self, root: Path) -> None:
        if self.driver is None:
            return
        flavour = "Open Kernel Module for x86_64" if self.open_module else "x86_64 Kernel Module"
        _put(root, "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX {flavour}  {self.driver}  Release Build\n")
        _put(root, "sys/module/nvidia/version", self.driver)
        gpus = [slot for slot in self.slots if slot.device_class.startswith("03")]
        numbers = self.minors or tuple(range(len(gpus)))
        for name in (*(f"nvidia{number}" for number in numbers), "nvidiactl", "nvidia-uvm"):
            _put(root, f"dev/{name}", "")
            (root / "dev" / name).chmod(self.node_mode)

    def _write_slot(self, root: Path, slot: Slot, group: int) -> None:
        folder = root / f"sys/devices/pci{slot.host_bridge}"
        for name in slot.bridges:
            folder /= name
            if not folder.exists():
                self._write_function(root, folder, slot, device="c030", device_class="060400")
                _put(folder, "vendor", "0x1000")
                (folder / "config").write_bytes(_config(slot.acs)[: self.config_bytes])
        folder /= slot.bus_id
        self._write_function(root, folder, slot, device=slot.device, device_class=slot.device_class)
        _put(folder, "vendor", "0x10de")
        (folder / "config").write_bytes(b"\xff" * 4096 if slot.lost else _config(NO_ACS)[: self.config_bytes])
        if slot.driver:
            (folder / "driver").symlink_to(f"../../../bus/pci/drivers/{slot.driver}")
        if self.iommu:
            _put(root, f"sys/kernel/iommu_groups/{group}/type", self.iommu)
            (folder / "iommu_group").symlink_to(root / f"sys/kernel/iommu_groups/{group}")

    def _write_function(self, root: Path, folder: Path, slot: Slot, *, device: str, device_class: str) -> None:
        files = {
            "device": f"0x{device}",
            "class": f"0x{device_class}",
            "subsystem_vendor": "0x10de",
            "subsystem_device": "0x16c1",
            "numa_node": "-1" if slot.node is None else str(slot.node),
            "local_cpulist": self.node_cpus(slot.node),
            "aer_dev_correctable": "RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0",
            "aer_dev_nonfatal": "Undefined 0\nTOTAL_ERR_NONFATAL 0",
            "aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0",
        }
        if slot.generation is not None and slot.width is not None:
            files |= {
                "current_link_speed": "Unknown" if slot.lost else f"{SPEEDS[slot.generation]} GT/s PCIe",
                "max_link_speed": f"{SPEEDS[slot.generation_max]} GT/s PCIe",
                "current_link_width": "63" if slot.lost else str(slot.width),
                "max_link_width": str(slot.width_max),
            }
        for name, text in files.items():
            _put(folder, name, text)
        (root / "sys/bus/pci/devices" / folder.name).symlink_to(folder)


def level(first: Slot, second: Slot) -> int:
    """NVML's topology level of two slots: PIX, PXB, PHB, NODE or SYS.

    PIX: connected by one switch (a shared upstream port). PXB: by several switches. PHB: only by the host bridge.
    """
    shared = [one for one, other in zip(first.bridges, second.bridges, strict=False) if one == other]
    if len(shared) > 1:
        return 10 if len(shared) == len(first.bridges) - 1 == len(second.bridges) - 1 else 20
    if first.host_bridge == second.host_bridge:
        return 30
    return 40 if first.node is not None and first.node == second.node else 50


def _config(acs: int | None) -> bytes:
    """A configuration space with AER, and with ACS unless its control is None."""
    space = bytearray(4096)
    space[0x100:0x104] = (0x0001 | 2 << 16 | (0x148 << 20 if acs is not None else 0)).to_bytes(4, "little")
    if acs is not None:
        space[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
        space[0x14C:0x14E] = (0x5F).to_bytes(2, "little")
        space[0x14E:0x150] = acs.to_bytes(2, "little")
    return bytes(space)


def _put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.endswith("\n") or not text else f"{text}\n", encoding="utf-8")


def nvml_bus_id(slot: Slot) -> str:
    """The slot's address in NVML's form."""
    domain, _, rest = slot.bus_id.partition(":")
    return f"{int(domain, 16):08X}:{rest.upper()}"


def affinity(tree: Tree, slots: Sequence[Slot]) -> list[dict[str, str | int]]:
    """NVML's answers about the CPUs and NUMA nodes near each slot."""
    return [{"cpu_affinity": tree.node_cpus(slot.node), **_node(slot)} for slot in slots]


def _node(slot: Slot) -> dict[str, str | int]:
    return {} if slot.node is None else {"numa_affinity": slot.node}
