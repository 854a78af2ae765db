from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import TABLE, group, imported, imported_gpus
from kdoctor.facts import GpuProcess, Gpus, KernelDriver
from kdoctor_recordings.facts import ImportedLines

MIB = 1024**2


def test_rows_and_processes(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, TABLE)
    first, second = gpus.devices
    assert (first.name, first.bus_id, first.persistence_mode, first.mig_mode) == (
        "NVIDIA Test 40GB",
        "0000:3b:00.0",
        True,
        False,
    )
    assert (first.temperature_c, first.performance_state, first.power_draw_w) == (40, 0, 100.0)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (1200 * MIB, 40960 * MIB)
    assert (first.utilization_gpu_percent, first.compute_mode, first.ecc_uncorrected_volatile) == (75, "default", 0)
    assert first.processes == (GpuProcess(pid=4711, used_memory_bytes=1190 * MIB, name="/opt/job/bin/python"),)
    assert (second.compute_mode, second.ecc_uncorrected_volatile, second.processes) == ("exclusive-process", 17, ())


def test_readings_missing_in_table_are_errors(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, TABLE)
    errors = gpus.devices[1].errors
    assert errors["fan_speed_percent"] == errors["temperature_c"] == errors["power_draw_w"] == "ERR!"
    assert errors["name"] == "not in the shortened name NVIDIA Very Long Name 40..."
    assert errors["mig_mode"] == "N/A"
    assert errors["pcie_width"] == "not in nvidia-smi"
    assert gpus.count == 2


def test_driver_610_reports_kernel_module(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, TABLE)
    assert (gpus.driver_version, gpus.cuda_driver_version) == (None, "13.3")
    assert imported(tmp_path, TABLE).facts[KernelDriver] == KernelDriver(loaded=True, version="610.43.02", nodes=None)


def test_old_banner(tmp_path: Path) -> None:
    text = TABLE.replace(
        "KMD Version: 610.43.02     CUDA UMD Version: 13.3", "Driver Version: 525.1.05  CUDA Version: 12.0"
    )
    gpus = imported_gpus(tmp_path, text)
    assert (gpus.driver_version, gpus.cuda_driver_version) == ("525.1.05", "12.0")


NVITOP = """\
╒═════════════════════════════════════════════════════════════════════════════╕
│ NVITOP 1.9.9      Driver Version: 570.1.02        CUDA Driver Version: 12.8 │
├───────────────────────────────┬──────────────────────┬──────────────────────┤
│ GPU  Name        Persistence-M│ Bus-Id        Disp.A │ Volatile Uncorr. ECC │
│ Fan  Temp  Perf  Pwr:Usage/Cap│         Memory-Usage │ GPU-Util  Compute M. │
╞═══════════════════════════════╪══════════════════════╪══════════════════════╡
│   0  ..la Test-SXM2-16GB  Off │ 00000000:3B:00.0 Off │                    0 │
│ N/A   41C   P0     60W / 300W │  1.50GiB  / 16384MiB │     12%      Default │
╘═══════════════════════════════╧══════════════════════╧══════════════════════╛
[ CPU: ▏ 1.6%            UPTIME: 1:19:36 ]  ( Load Average:  0.27  0.32  0.38 )
"""


def test_frames_of_nvitop_are_read_as_those_of_nvidia_smi(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, NVITOP)
    (gpu,) = gpus.devices
    assert (gpus.driver_version, gpus.cuda_driver_version, gpus.not_understood) == ("570.1.02", "12.8", ())
    assert (gpu.name, gpu.bus_id, gpu.temperature_c, gpu.power_draw_w) == (None, "0000:3b:00.0", 41, 60.0)
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes, gpu.processes) == (1536 * MIB, 16384 * MIB, None)


def test_no_running_processes(tmp_path: Path) -> None:
    lines = [line for line in TABLE.splitlines() if "/opt/job" not in line and "Xorg" not in line]
    lines.insert(-1, "|  No running processes found                                                             |")
    assert imported_gpus(tmp_path, "\n".join(lines) + "\n").devices[0].processes == ()


def test_empty_list_of_processes_is_unknown(tmp_path: Path) -> None:
    lines = [line for line in TABLE.splitlines() if "/opt/job" not in line and "Xorg" not in line]
    gpu = imported_gpus(tmp_path, "\n".join(lines) + "\n").devices[0]
    assert gpu.processes is None
    assert gpu.errors["processes"] == "not in nvidia-smi"


def test_truncated_list_of_processes_is_unknown(tmp_path: Path) -> None:
    text = TABLE[: TABLE.index("|    1   N/A  N/A              80")]
    assert imported_gpus(tmp_path, text).devices[1].processes is None


@pytest.mark.parametrize(("kind", "found"), [("C  ", [80]), ("M+C", [80]), ("C+G", []), ("G  ", [])])
def test_applications_of_a_desktop_are_no_compute_processes(tmp_path: Path, kind: str, found: list[int]) -> None:
    gpus = imported_gpus(tmp_path, TABLE.replace("G   /usr/lib", f"{kind} /usr/lib"))
    assert [process.pid for process in gpus.devices[1].processes or ()] == found


JETSON = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 540.4.0                Driver Version: 540.4.0      CUDA Version: 12.6     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|=========================================+======================+======================|
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+

+---------------------------------------------------------------------------------------+
| Processes:                                                                            |
+---------------------------------------------------------------------------------------+
"""


def test_row_that_was_not_understood_is_kept(tmp_path: Path) -> None:
    row = "|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |\n"
    gpus = imported_gpus(tmp_path, JETSON.replace(row, row + "| something else                          |\n"))
    assert [line.partition(": ")[2] for line in gpus.not_understood] == ["something else"]


def test_gpu_that_needs_a_reset_is_read(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, TABLE.replace("   0MiB /  40960MiB", "GPU requires reset "))
    assert (gpus.not_understood, gpus.devices[1].errors["memory_used_bytes"]) == ((), "GPU requires reset")


ROW_3 = """\
|   3  NVIDIA Test 40GB               On  |   00000000:5E:00.0 Off |                  Off |
| 30%   41C    P8             15W /  70W |       0MiB /  15360MiB |      0%      Default |
"""


def test_row_of_two_lines_and_rows_without_a_line_between(tmp_path: Path) -> None:
    """Before drivers with MIG, a row has two lines. With MIG on, "On" is in the place of the ECC errors."""
    head, _, rest = TABLE.partition("|   0  NVIDIA Test")
    processes = rest[rest.index("\n+---", rest.index("N/A |\n+")) + 1 :]
    for between in ("", "+------+\n"):
        divided = ROW_3.replace("   3  ", "   4  ").replace("5E", "5F").replace("Off |\n", " On |\n")
        text = f"{head}{ROW_3}{between}{divided}{processes}"
        first, second = imported_gpus(tmp_path, text).devices
        assert (first.index, first.bus_id, first.fan_speed_percent, first.mig_mode) == (3, "0000:5e:00.0", 30, None)
        assert first.errors["ecc_uncorrected_volatile"] == "N/A"  # ECC is off
        assert (second.index, second.bus_id, second.mig_mode) == (4, "0000:5f:00.0", True)


@cases(("GPU", "MIG 1g.10gb         19        9          2:1     |"), ("Compute", "7       MIG 1g.5gb  0  0  0:1  |"))
def test_gpus_with_instances_have_mig_on(tmp_path: Path, kind: str, row: str) -> None:
    rows = f"|   0  {row}\n|   2  {row}\n"
    facts = imported(tmp_path, f"+---+\n| {kind} instances:      |\n| GPU   Name   |\n|=======|\n{rows}+---+\n").facts
    gpus = group(facts, Gpus)
    assert ([(gpu.index, gpu.mig_mode) for gpu in gpus.devices], gpus.count) == ([(0, True), (2, True)], None)
    assert not gpus.not_understood
    assert ImportedLines not in facts


@cases(("", 0, 2), ("$ nvidia-smi -i 0,1\n", 0, None), ("$ nvidia-smi --id=0,1\n", 0, None), ("", 1, None))
def test_table_counts_the_gpus_if_it_lists_all(tmp_path: Path, command: str, first: int, count: int | None) -> None:
    table = TABLE.replace("|   1  NVIDIA", f"|   {first + 1}  NVIDIA").replace("|   0  NVIDIA", f"|   {first}  NVIDIA")
    gpus = imported_gpus(tmp_path, f"{command}{table}")
    assert (gpus.count, [gpu.index for gpu in gpus.devices]) == (count, [first, first + 1])


def test_line_without_its_closing_bar_is_ignored(tmp_path: Path) -> None:
    cut = imported_gpus(tmp_path, TABLE[: TABLE.index("E. Process")])
    assert (cut.devices[1].ecc_uncorrected_volatile, cut.devices[1].utilization_gpu_percent) == (17, None)
    head = imported_gpus(tmp_path, TABLE.replace("CUDA UMD Version: 13.3     |", "CUDA UMD Version: 13.3"))
    assert head.cuda_driver_version is None


def test_several_processes_of_each_gpu(tmp_path: Path) -> None:
    row = "|    0   N/A  N/A            4711      C   /opt/job/bin/python                    1190MiB |\n"
    rows = (
        row
        + row.replace("4711", "4712").replace("1190MiB", "    N/A")
        + row.replace("|    0", "|    1").replace("4711", "4713").replace("/opt/job/bin/python", "...job/bin/python  ")
    )
    first, second = imported_gpus(tmp_path, TABLE.replace(row, rows)).devices
    assert [(one.pid, one.used_memory_bytes) for one in first.processes or ()] == [(4711, 1190 * MIB), (4712, None)]
    assert [(one.pid, one.name) for one in second.processes or ()] == [(4713, None)]
    assert [one.pid for one in second.graphics_processes or ()] == [80]
    assert first.graphics_processes == ()


def test_gpus_of_virtual_machines_are_not_gpus_of_their_host(tmp_path: Path) -> None:
    head = (
        "| NVIDIA-SMI 470.63  Driver Version: 470.63 |\n|   vGPU ID     Name   | VM ID     VM Name   | vGPU-Util  |\n"
    )
    rows = (
        "|   0  Tesla T4   | 00000000:85:00.0   |   0%  |\n|   3251649543  GRID T4-4C  | 0607...  vm-7  |   0%    |\n"
    )
    (device,) = imported_gpus(tmp_path, head + rows).devices
    assert (device.virtualization_mode, device.numbered) == ("host-vgpu", False)
