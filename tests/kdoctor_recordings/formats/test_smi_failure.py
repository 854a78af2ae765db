"""What nvidia-smi prints when it fails, for all GPUs or for one."""

from pathlib import Path

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import group, imported, imported_gpus
from kdoctor.facts import Gpus
from kdoctor_recordings.formats.smi_failure import damaged, is_about_gpu, lost

LOST = "Unable to determine the device handle for GPU{}: 0000:{}:00.0: GPU is lost.  Reboot the system to recover"
DAMAGED = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"


@cases((LOST.format(2, "3B"), True), (DAMAGED, True), ("WARNING: something else", False), ("", False))
def test_line_about_a_gpu(line: str, *, is_about: bool) -> None:
    assert is_about_gpu(line) is is_about


def test_lost_gpu_has_its_index_address_and_reason() -> None:
    found = lost(LOST.format(0, "3B"))
    assert found is not None
    assert (found.index, found.bus_id, found.errors) == (0, "0000:3b:00.0", {"handle": "GPU is lost"})
    other = lost("Unable to determine the device handle for GPU 00000000:3B:00.0: Unknown Error")
    assert other is not None
    assert (other.index, other.bus_id, other.errors) == (None, "0000:3b:00.0", {"handle": "Unknown Error"})
    told = lost(
        f"- {LOST.format(0, '3B').partition(':')[0]}: 0000:3B:00.0: Unknown Error / No devices were found; help"
    )
    assert told is not None
    assert (told.index, told.errors) == (0, {"handle": "Unknown Error"})
    told = lost(f"掉卡 {LOST[1:].format(0, '3B').partition(' GPU is')[0]} Unknown Errornon-zero return code 。使用命令")
    assert told is not None
    assert told.errors == {"handle": "Unknown Error"}
    assert lost(DAMAGED) is None
    assert lost("Unable to detect the device handle for GPU0000:B1:00.0: Unknown Error") is not None


def test_warning_alone_names_its_gpu(tmp_path: Path) -> None:
    (gpu,) = imported_gpus(tmp_path, f"it says {DAMAGED}\n").devices
    assert (gpu.bus_id, gpu.errors["inforom"]) == ("0000:3b:00.0", "infoROM is corrupted")


def test_damaged_gpus_are_found_among_other_lines() -> None:
    found = damaged(["", DAMAGED, "something", DAMAGED.replace("3B", "AF")])
    assert [gpu.bus_id for gpu in found] == ["0000:3b:00.0", "0000:af:00.0"]


def test_each_lost_gpu_of_a_file(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, f"{LOST.format(0, '3B')}\nsomething\n{LOST.format(3, 'AF')}\n")
    assert [(gpu.index, gpu.bus_id) for gpu in gpus.devices] == [(0, "0000:3b:00.0"), (3, "0000:af:00.0")]
    # The last line may be cut off before the reason ends.
    gpus = imported_gpus(tmp_path, f"{LOST.format(0, '3B')}\n{LOST.format(3, 'AF')[:-30]}")
    assert [gpu.index for gpu in gpus.devices] == [0]


def test_message_is_one_line_of_a_bounded_length(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, "Failed to initialize NVML: Unknown\n  Error\n")
    assert (gpus.state, gpus.error) == ("failed", "Failed to initialize NVML: Unknown Error")
    gpus = imported_gpus(tmp_path, f"Failed to initialize NVML: {'x' * 400}\n")
    assert len(gpus.error or "") == 300
    for line in ("lstat /dev/nvidia-uvm: no such file or directory", "Error: Could not load UVM kernel module. Is it"):
        assert imported_gpus(tmp_path, f"It says:\n\n{line}\n").error == line


@cases(
    ("initialization error: nvml error: driver not loaded: unknown.", "driver-not-loaded"),
    ("initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object", "library-absent"),
    ("initialization error: driver error: failed to process request", "failed"),
)
def test_container_runtime_says_what_the_driver_lacks(tmp_path: Path, why: str, state: str) -> None:
    for program in ("nvidia-container-cli", "nvidia-container-cli.real"):
        gpus = imported_gpus(tmp_path, f"docker: Error response: {'hook ' * 99}#0: stderr: {program}: {why}\n")
        assert (gpus.state, gpus.error) == (state, f"{program}: {why}")


def test_machine_without_gpus_has_a_working_driver(tmp_path: Path) -> None:
    found = group(imported(tmp_path, "No devices were found\nand more\n").facts, Gpus)
    assert (found.state, found.count, found.devices) == ("ready", 0, ())
