"""A machine with one GPU that is not there, to rehearse the tests on a real GPU.

NVML and the CUDA driver are fakes, nvidia-smi, lspci and dmesg are scripts, and /sys, /proc and /dev are a folder. The
GPU gets busy while a process holds its memory.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers import nvml_library as nvml
from helpers.machines.description import describe, epyc_slots
from helpers.trees import Tree
from kdoctor.probes.probe import ROOT_VARIABLE

ROOT = Path(__file__).parents[2]
HELD = "KDOCTOR_FAKE_CUDA_HELD"
DRIVER = "570.158.01"
TOOLS = ("nvidia-smi", "lspci", "dmesg")
_LOG = ("Linux version 6.8.0-60-generic", "nvidia: loading out-of-tree module taints kernel.")
_NODE = "0-63"

_XML = f"""\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>{DRIVER}</driver_version><cuda_version>12.8</cuda_version><attached_gpus>1</attached_gpus>
  <gpu id="00000000:41:00.0">
    <product_name>NVIDIA L4</product_name><product_architecture>Ada Lovelace</product_architecture>
    <persistence_mode>Enabled</persistence_mode><addressing_mode>None</addressing_mode>
    <mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>
    <uuid>GPU-00000000-0000-4000-8000-000000000000</uuid><minor_number>0</minor_number>
    <gpu_virtualization_mode><virtualization_mode>None</virtualization_mode></gpu_virtualization_mode>
    <pci><pci_gpu_link_info>
      <pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>4</current_link_gen>
        <max_device_link_gen>4</max_device_link_gen></pcie_gen>
      <link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths>
    </pci_gpu_link_info><replay_counter>0</replay_counter></pci>
    <fan_speed>N/A</fan_speed><performance_state>P0</performance_state>
    <fb_memory_usage><total>23034 MiB</total><used>1 MiB</used></fb_memory_usage>
    <bar1_memory_usage><total>32768 MiB</total></bar1_memory_usage>
    <compute_mode>Default</compute_mode>
    <utilization><gpu_util>0 %</gpu_util><memory_util>0 %</memory_util></utilization>
    <ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
    <remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
      <remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
    <temperature><gpu_temp>41 C</gpu_temp><gpu_temp_tlimit>46 C</gpu_temp_tlimit></temperature>
    <gpu_power_readings><power_draw>7.20 W</power_draw><current_power_limit>72.00 W</current_power_limit>
      <default_power_limit>72.00 W</default_power_limit></gpu_power_readings>
    <clocks><sm_clock>408 MHz</sm_clock><mem_clock>6251 MHz</mem_clock></clocks>
    <max_clocks><sm_clock>2040 MHz</sm_clock><mem_clock>6251 MHz</mem_clock></max_clocks>
    <gpu_recovery_action>None</gpu_recovery_action>
    <processes></processes>
  </gpu>
</nvidia_smi_log>
"""
_TEXT = f"""
==============NVSMI LOG==============

Timestamp                                 : Mon Jan  5 10:00:00 2026
Driver Version                            : {DRIVER}
CUDA Version                              : 12.8

Attached GPUs                             : 1
GPU 00000000:41:00.0
    Product Name                          : NVIDIA L4
    Product Architecture                  : Ada Lovelace
    Persistence Mode                      : Enabled
    Addressing Mode                       : None
    MIG Mode
        Current                           : N/A
        Pending                           : N/A
    GPU UUID                              : GPU-00000000-0000-4000-8000-000000000000
    Minor Number                          : 0
    GPU Virtualization Mode
        Virtualization Mode               : None
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
                Device Max                : 4
            Link Width
                Max                       : 16x
                Current                   : 16x
    BAR1 Memory Usage
        Total                             : 32768 MiB
    FB Memory Usage
        Total                             : 23034 MiB
    Compute Mode                          : Default
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 0
        Pending                           : No
        Remapping Failure Occurred        : No
    GPU Power Readings
        Current Power Limit               : 72.00 W
        Default Power Limit               : 72.00 W
    Max Clocks
        SM                                : 2040 MHz
        Memory                            : 6251 MHz
    GPU Recovery Action                   : None
    Processes                             : None
"""
_CSV = {
    "index": "0",
    "name": "NVIDIA L4",
    "uuid": "GPU-00000000-0000-4000-8000-000000000000",
    "pci.bus_id": "00000000:41:00.0",
    "driver_version": DRIVER,
    "compute_cap": "8.9",
    "memory.total": "23034",
    "memory.used": "20001",
    "persistence_mode": "Enabled",
    "ecc.mode.current": "Enabled",
    "mig.mode.current": "[N/A]",
    "compute_mode": "Default",
    "clocks.max.sm": "2040",
    "clocks.max.memory": "6251",
    "enforced.power.limit": "72.00",
    "power.default_limit": "72.00",
    "pcie.link.gen.max": "4",
    "pcie.link.width.max": "16",
}
_TOPOLOGY = (
    f"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t{_NODE}\t0\t\tN/A\n\nLegend:\n\n  X    = Self\n"
)
_LSPCI = """\
0000:00:00.0 Host bridge [0600]: Example Corp. Device [1234:0001]

0000:40:01.1 PCI bridge [0604]: Example Corp. Device [1234:0002] (prog-if 00 [Normal decode])
\tBus: primary=40, secondary=41, subordinate=41, sec-latency=0
\tCapabilities: [90] Express (v2) Root Port (Slot+), MSI 00
\t\tLnkCap:\tPort #5, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <16us
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x16 (ok)

0000:41:00.0 3D controller [0302]: NVIDIA Corporation AD104GL [L4] [10de:27b8] (rev a1)
\tNUMA node: 0
\tCapabilities: [78] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x16 (ok)
\tKernel driver in use: nvidia

"""


@dataclass(frozen=True)
class Rehearsal:
    """A prepared machine."""

    folder: Path
    variables: dict[str, str]

    def change(self, tool: str, old: str, new: str) -> None:
        """Change what a program prints."""
        changed = False
        for path in self.folder.glob(f"answers/{tool}*"):
            text = path.read_text(encoding="utf-8")
            changed |= old in text
            path.write_text(text.replace(old, new), encoding="utf-8")
        assert changed, old

    def run(self, *arguments: str, python: str = sys.executable, timeout_s: float = 120) -> tuple[int, str]:
        """Run the tests on a GPU; returns the exit code and the output."""
        command = [python, str(ROOT / "tests/gpu/run.py"), *arguments]
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.variables,
            cwd=self.folder,
            timeout=timeout_s,
        )
        return done.returncode, done.stdout


def prepare(folder: Path, *, tools: tuple[str, ...] = TOOLS) -> Rehearsal:
    """Write the machine to the folder. Skips the test without a C compiler."""
    libraries = folder / "libraries"
    libraries.mkdir(parents=True)
    nvml.build(libraries)
    source = Path(nvml.__file__).parent / "nvml" / "cuda.c"
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", libraries / "libcuda.so.1", source], check=True)
    held = folder / "held"

    def busy(one: str | int, other: str | int) -> str:
        return nvml.while_there(held, one, other)

    gpu = nvml.l4(
        memory_used=busy(20001 * 1024**2, 1024**2),
        utilization_gpu=busy(98, 0),
        power_draw=busy(71000, 7200),
        clock_sm=busy(2040, 408),
        processes=busy("4711:1048576", ""),
    )
    tree = Tree(driver=DRIVER, log=_LOG[1:])
    machine = describe([gpu], epyc_slots(("41",), device="27b8", generation=4, generation_max=4), tree)
    _write_tools(folder, tools)
    variables = {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CUDA_VISIBLE_DEVICES")},
        "PATH": f"{folder / 'bin'}:{'/usr/bin:/bin' if tools == TOOLS else folder / 'bin'}",
        "LD_LIBRARY_PATH": str(libraries),
        **machine.nvml.write(folder / "machine"),
        ROOT_VARIABLE: str(machine.tree.write(folder / "root")),
        HELD: str(held),
        "KDOCTOR_GPU_REHEARSAL": "1",
        "PIP_NO_INDEX": "1",
    }
    return Rehearsal(folder, variables)


def _write_tools(folder: Path, tools: tuple[str, ...]) -> None:
    answers, programs = folder / "answers", folder / "bin"
    answers.mkdir()
    programs.mkdir()
    lines = [(second, line) for second, line in enumerate((*_LOG[:1], "Command line: quiet", *_LOG[1:]))]
    texts = {
        "nvidia-smi -q -x": _XML,
        "nvidia-smi -q": _TEXT,
        "nvidia-smi topo -m": _TOPOLOGY,
        "nvidia-smi nvlink -s": "",
        **{f"nvidia-smi --query-gpu={name} --format=csv,noheader,nounits": f"{text}\n" for name, text in _CSV.items()},
        "lspci -D -nn -vvv": _LSPCI,
        "dmesg": "".join(f"[{second:12.6f}] {line}\n" for second, line in lines),
        "dmesg -T": "".join(f"[Mon Jan  5 10:00:0{second} 2026] {line}\n" for second, line in lines),
        "dmesg --time-format iso": "".join(
            f"2026-01-05T10:00:0{second},000000+00:00 {line}\n" for second, line in lines
        ),
    }
    for command, text in texts.items():
        (answers / command.replace("/", "_")).write_text(text, encoding="utf-8")
    for name in tools:
        program = programs / name
        program.write_text(
            f'#!/bin/sh\nanswer="{answers}/$(echo {name} "$@")"\n'
            '[ -f "$answer" ] || { echo "unknown option: $*" >&2; exit 2; }\n/bin/cat "$answer"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
