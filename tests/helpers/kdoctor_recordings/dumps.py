"""Output of nvidia-smi, lspci and the kernel for invented machines.

The names of the entries are those of the real programs (https://docs.nvidia.com/deploy/nvidia-smi/). Machines, numbers
and identities are invented.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from kdoctor.facts import FactGroup, Gpus, PciDevices
from kdoctor_recordings.importer import Imported, import_files

Group = TypeVar("Group", bound=FactGroup)
UUID = "GPU-0a1b2c3d-0000-1111-2222-33334444555{}"

QUERY_GPU = """\
GPU 00000000:{bus}:00.0
    Product Name                          : NVIDIA Test 40GB
    Product Architecture                  : Ampere
    Persistence Mode                      : Enabled
    Addressing Mode                       : None
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    GPU UUID                              : {uuid}
    Minor Number                          : {minor}
    GPU Virtualization Mode
        Virtualization Mode               : None
    PCI
        Bus Id                            : 00000000:{bus}:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
                Device Max                : 4
            Link Width
                Max                       : 16x
                Current                   : 16x
        Replays Since Reset               : 12
    Fan Speed                             : N/A
    Performance State                     : P0
    {reasons}
        Idle                              : Not Active
        Applications Clocks Setting       : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
        SW Thermal Slowdown               : Not Active
        Display Clock Setting             : Not Active
    FB Memory Usage
        Total                             : 40960 MiB
        Reserved                          : 550 MiB
        Used                              : 1200 MiB
        Free                              : 39210 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
    Compute Mode                          : Default
    Utilization
        Gpu                               : 75 %
        Memory                            : 20 %
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 1
            SRAM Uncorrectable Parity     : 0
            SRAM Uncorrectable SEC-DED    : 2
            DRAM Correctable              : 30
            DRAM Uncorrectable            : 4
        Aggregate
            SRAM Correctable              : 10
            SRAM Uncorrectable Parity     : 20
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Correctable              : 0
            DRAM Uncorrectable            : 0
            SRAM Threshold Exceeded       : Yes
    Retired Pages
        Single Bit ECC                    : N/A
        Double Bit ECC                    : N/A
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 11
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 61 C
        GPU T.Limit Temp                  : 25 C
        GPU Shutdown T.Limit Temp         : -7 C
        GPU Slowdown T.Limit Temp         : -2 C
    GPU Power Readings
        Power Draw                        : 210.50 W
        Current Power Limit               : 250.00 W
        Default Power Limit               : 300.00 W
    Clocks
        Graphics                          : 1100 MHz
        SM                                : 1110 MHz
        Memory                            : 1215 MHz
    Max Clocks
        Graphics                          : 1410 MHz
        SM                                : 1410 MHz
        Memory                            : 1215 MHz
    Fabric
        State                             : In Progress
        Status                            : N/A
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4711
            Type                          : C
            Name                          : /opt/job/bin/python
            Used GPU Memory               : 1190 MiB
        Process ID                        : 4712
            Type                          : C
            Name                          : /opt/job/bin/python
            Used GPU Memory               : N/A
        Process ID                        : 80
            Type                          : G
            Name                          : /usr/lib/xorg/Xorg
            Used GPU Memory               : 4 MiB

"""


def query(
    *buses: str,
    attached: int | None = None,
    versions: str = "Driver Version : 535.161.08\nCUDA Version : 12.2",
    reasons: str = "Clocks Event Reasons",
    changes: Mapping[str, str] | None = None,
) -> str:
    """``nvidia-smi -q`` of GPUs on these buses; ``changes`` replaces pieces of its text."""
    head = f"\n==============NVSMI LOG==============\n\nTimestamp : Mon Jan  5 10:00:00 2026\n{versions}\n\n"
    blocks = (
        QUERY_GPU.format(bus=bus, uuid=UUID.format(place), minor=place, reasons=reasons)
        for place, bus in enumerate(buses)
    )
    text = f"{head}Attached GPUs : {len(buses) if attached is None else attached}\n{''.join(blocks)}"
    for old, new in (changes or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    return text


XML_GPU = """\
    <gpu id="00000000:{bus}:00.0">
        <product_name>NVIDIA Test 40GB</product_name>
        <product_architecture>Ampere</product_architecture>
        <persistence_mode>Disabled</persistence_mode>
        <mig_mode>
            <current_mig>Enabled</current_mig>
            <pending_mig>Disabled</pending_mig>
        </mig_mode>
        <uuid>{uuid}</uuid>
        <minor_number>{minor}</minor_number>
        <gpu_virtualization_mode><virtualization_mode>Pass-Through</virtualization_mode></gpu_virtualization_mode>
        <pci>
            <pci_gpu_link_info>
                <pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>1</current_link_gen>
                    <max_device_link_gen>4</max_device_link_gen></pcie_gen>
                <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
            </pci_gpu_link_info>
            <replay_counter>7</replay_counter>
        </pci>
        <fan_speed>31 %</fan_speed>
        <performance_state>P8</performance_state>
        <clocks_throttle_reasons>
            <clocks_throttle_reason_gpu_idle>Active</clocks_throttle_reason_gpu_idle>
            <clocks_throttle_reason_sw_power_cap>Not Active</clocks_throttle_reason_sw_power_cap>
            <clocks_throttle_reason_hw_slowdown>Not Active</clocks_throttle_reason_hw_slowdown>
            <clocks_throttle_reason_hw_thermal_slowdown>Active</clocks_throttle_reason_hw_thermal_slowdown>
            <clocks_throttle_reason_hw_power_brake_slowdown>Not Active</clocks_throttle_reason_hw_power_brake_slowdown>
            <clocks_throttle_reason_sw_thermal_slowdown>Not Active</clocks_throttle_reason_sw_thermal_slowdown>
        </clocks_throttle_reasons>
        <fb_memory_usage><total>40960 MiB</total><used>3 MiB</used></fb_memory_usage>
        <compute_mode>Prohibited</compute_mode>
        <ecc_errors><volatile>
            <single_bit><total>3</total></single_bit><double_bit><total>N/A</total></double_bit>
        </volatile></ecc_errors>
        <retired_pages>
            <multiple_single_bit_retirement><retired_count>5</retired_count></multiple_single_bit_retirement>
            <double_bit_retirement><retired_count>6</retired_count></double_bit_retirement>
            <pending_retirement>Yes</pending_retirement>
        </retired_pages>
        <remapped_rows>N/A</remapped_rows>
        <temperature>
            <gpu_temp>34 C</gpu_temp>
            <gpu_temp_max_threshold>92 C</gpu_temp_max_threshold>
            <gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold>
        </temperature>
        <power_readings>
            <power_draw>50.00 W</power_draw>
            <default_power_limit>300.00 W</default_power_limit>
            <enforced_power_limit>150.00 W</enforced_power_limit>
        </power_readings>
        <clocks><sm_clock>210 MHz</sm_clock><mem_clock>405 MHz</mem_clock></clocks>
        <max_clocks><sm_clock>1410 MHz</sm_clock><mem_clock>1215 MHz</mem_clock></max_clocks>
        <processes>
            <process_info><pid>99</pid><type>C</type><process_name>python</process_name>
                <used_memory>3 MiB</used_memory></process_info>
        </processes>
    </gpu>
"""


def xml(*buses: str, attached: int | None = None) -> str:
    """``nvidia-smi -q -x`` of GPUs on these buses."""
    blocks = (XML_GPU.format(bus=bus, uuid=UUID.format(place), minor=place) for place, bus in enumerate(buses))
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">\n<nvidia_smi_log>\n'
        "    <driver_version>460.73.01</driver_version>\n    <cuda_version>11.2</cuda_version>\n"
        f"    <attached_gpus>{len(buses) if attached is None else attached}</attached_gpus>\n"
        f"{''.join(blocks)}</nvidia_smi_log>\n"
    )


TABLE = """\
Mon Jan  5 10:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA Test 40GB               On  |   00000000:3B:00.0 Off |                    0 |
| N/A   40C    P0            100W /  300W |    1200MiB /  40960MiB |     75%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA Very Long Name 40...    Off |   00000000:AF:00.0 Off |                   17 |
|ERR!   ERR!  P8              ERR! / ERR! |       0MiB /  40960MiB |      0%   E. Process |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            4711      C   /opt/job/bin/python                    1190MiB |
|    1   N/A  N/A              80      G   /usr/lib/xorg/Xorg                        4MiB |
+-----------------------------------------------------------------------------------------+
"""

TOPOLOGY = """\
\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV12\tSYS\tPXB\t0-3,8-11\t0\t\tN/A
GPU1\tNV12\t X \tPHB\tSYS\t0-3,8-11\t0-1\t\t2
GPU2\tSYS\tPHB\t X \tSYS\t4-7\tN/A\t\tN/A
NIC0\tPXB\tSYS\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
"""

NVLINK = f"""\
GPU 0: NVIDIA Test 40GB (UUID: {UUID.format(0)})
\t Link 0: 25 GB/s
\t Link 1: <inactive>
\t Link 2: 26.562 GB/s
GPU 1: NVIDIA Test 40GB (UUID: {UUID.format(1)})
\t Link 0: 25 GB/s
\t Link 1: 25 GB/s
\t Link 2: 25 GB/s
"""

LSPCI = """\
00:00.0 Host bridge: Example Corp. Device 0001

00:01.0 PCI bridge: Example Corp. Device 0002 (prog-if 00 [Normal decode])
\tNUMA node: 1
\tBus: primary=00, secondary=3a, subordinate=3b, sec-latency=0
\tCapabilities: [90] Express (v2) Root Port (Slot+), MSI 00
\t\tLnkCap:\tPort #5, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <16us
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x8 (downgraded)
\tCapabilities: [100 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\tKernel driver in use: pcieport

3a:00.0 PCI bridge: Example Corp. Device 0003 (prog-if 00 [Normal decode])
\tBus: primary=3a, secondary=3b, subordinate=3b, sec-latency=0
\tCapabilities: <access denied>
\tKernel driver in use: pcieport

3b:00.0 3D controller: NVIDIA Corporation Device 20b0 (rev a1)
\tSubsystem: NVIDIA Corporation Device 134f
\tNUMA node: 1
\tIOMMU group: 27
\tCapabilities: [78] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)
\tCapabilities: [100 v1] Virtual Channel
\tKernel driver in use: nvidia
\tKernel modules: nouveau, nvidia

3b:00.1 Audio device: NVIDIA Corporation Device 10f8 (rev a1)
\tCapabilities: [100 v1] Virtual Channel

"""

LOG = """\
[    0.000000] Linux version 6.8.0 (builder@host)
[  100.250000] nvidia 0000:3b:00.0: enabling device (0000 -> 0002)
[  200.500000] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
"""


def imported(folder: Path, *texts: str) -> Imported:
    """Import the texts together, from files with neutral names."""
    paths = [folder / f"file-{place}" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    return import_files(paths)


def group(facts: Mapping[type[FactGroup], FactGroup], kind: type[Group]) -> Group:
    """The group of facts of this type."""
    found = facts[kind]
    assert isinstance(found, kind)
    return found


def imported_gpus(folder: Path, *texts: str) -> Gpus:
    """The imported GPUs."""
    return group(imported(folder, *texts).facts, Gpus)


def imported_pci(folder: Path, *texts: str) -> PciDevices:
    """The imported PCI devices."""
    return group(imported(folder, *texts).facts, PciDevices)
