"""The checks of what TensorFlow was built with and for: CUDA, the driver, and code for the GPUs."""

from dataclasses import replace
from typing import Any

from helpers.facts import PYTHON, gpu, gpus, h100_node, host, package, packages, target, tensorflow
from helpers.rows import Row, fails, judged, passes, skips, table, unknown
from kdoctor.facts import FactGroup, Gpus
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.model import Assumptions, GpuAssumption, Severity
from kdoctor_checks.versions._alternatives import with_alternatives

INSTALL = f"{PYTHON} -m pip install"
NODE = h100_node(1)
GPU0 = gpu(0).subject
CPU_BUILD = tensorflow(distribution="tensorflow-cpu", cuda_build=False, cuda_version=None)
WINDOWS = target(platform="win-amd64")
NOT_KNOWN = "the driver version is unknown: {}."

test_cuda_build = table(
    "versions.cuda-build",
    Severity.ERROR,
    passes(said={"tensorflow 2.21.0": "built with CUDA 12.5.1"}, briefs=["CUDA 12.5.1"]),
    passes(tensorflow(cuda_version=None), said={"tensorflow 2.21.0": "built with CUDA (release unknown)"}, briefs=[""]),
    fails(
        CPU_BUILD,
        packages(package("tensorflow-cpu", "2.21.0")),
        commands=(f"{PYTHON} -m pip uninstall -y tensorflow-cpu", f"{INSTALL} 'tensorflow[and-cuda]==2.21.0'"),
        rollback=(f"{INSTALL} tensorflow-cpu==2.21.0",),
    ),
    fails(CPU_BUILD, target(platform="linux-aarch64"), "; docker run --gpus all ", "Rollback: not needed", rollback=()),
    unknown(tensorflow(cuda_build=None), reason="tensorflow 2.21.0: the build does not state whether it has CUDA"),
    unknown(tensorflow(cuda_build=None, unreadable="no build_info.py"), reason="tensorflow 2.21.0: no build_info.py"),
    skips(CPU_BUILD, Assumptions(gpus=GpuAssumption(count=0))),
    given=(tensorflow(), packages(), target()),
)


def driver(version: str | None, offered: str | None = "13.0", capability: str | None = "10.0", **errors: str) -> Gpus:
    device = gpu(0, compute_capability=capability)
    return gpus(1, device, driver_version=version, cuda_driver_version=offered, errors=errors)


def cuda(release: str | None, **changes: Any) -> FactGroup:
    return tensorflow(cuda_version=release, **changes)


UNREAD = [
    unknown(driver(version, **errors), NOT_KNOWN.format(why))
    for version, errors, why in (
        (None, {"driver_version": "Unknown Error"}, "Unknown Error"),
        ("r570", {}, "'r570'"),
        ("N/A", {}, "'N/A'"),
        ("535.", {}, "'535.'"),
        ("\u0665\u0663\u0665.161.08", {}, "'\u0665\u0663\u0665.161.08'"),
    )
]
UNREAD += [unknown(driver(""))]
WSL = host(kernel="5.15.167.4-microsoft-standard-WSL2")
BRIDGED = "older than 525.60.13, but {}; cuda-compat may bridge the gap."

test_driver_for_cuda = table(
    "versions.driver-for-cuda",
    Severity.ERROR,
    # NVIDIA's minor-version compatibility, table 1: 11 needs 450.80.02, 12 needs 525.60.13, 13 needs 580.65.06
    passes(driver("525.60.13", "12.0"), "(CUDA 12 needs driver 525.60.13)."),
    passes(WSL, driver("527.41", "12.0"), "(CUDA 12 needs driver 527.41)."),  # the column of Windows
    fails(
        WSL,
        driver("526.98", "11.8"),
        "driver 527.41 or later",
        "in Windows, not in WSL2",
        commands=(),
        look=("kdoctor matrix --driver 526.98 --platform wsl2",),
    ),
    passes(cuda(None), driver("580.65.06")),  # the matrix has the CUDA of the 2.21.0 wheel
    fails(
        driver("470.223.02", "11.4"),
        "fail NVIDIA driver 470.223.02: ",
        "CUDA 12.5.1",
        "525.60.13",
        "nvidia-driver-470=470.223.02-*",
        commands=("sudo apt-get install nvidia-driver-525", "sudo reboot"),
        look=("kdoctor matrix --driver 470.223.02",),
    ),
    # cuda-compat supports more than the module.
    unknown(driver("470.223.02", "12.4"), BRIDGED.format("supports CUDA 12.4")),
    unknown(driver("470.223.02", None), BRIDGED.format("does not report its CUDA release")),
    unknown(cuda("14.1", version="2.99.0"), "the minimum driver for CUDA 14 is unknown."),
    unknown(cuda(None, version="2.99.0", unreadable="gone"), "is unknown: gone."),
    unknown(cuda(None, version="2.99.0"), "is unknown: neither the build nor the version matrix states it."),
    *UNREAD,
    unknown(driver("600.0"), WINDOWS),
    given=(tensorflow(), driver("580.105.08"), target()),
)


def for_hopper(status: Any, version: str, driver_version: str) -> Row:
    """The PTX of the generated kernels, which have no machine code for Hopper: read from the wheels."""
    release = shipped_matrix().release(version)
    assert release is not None
    built = (*(f"sm_{number}" for number in release.cubins[:-1]), f"compute_{release.cubins[-1]}")
    row: Row = status(
        tensorflow(version=version, cuda_version=release.cuda, compute_capabilities=built),
        driver(driver_version, "12.2", "9.0"),
    )
    return row


UNLISTED = tensorflow(version="2.99.0", compute_capabilities=(), cuda_version=None)
OLD_H100 = driver("535.161.08", "12.2", "9.0")
COMPAT, OLDER_RELEASE = "cuda-compat-12-5", f"{INSTALL} 'tensorflow[and-cuda]==2.16.2' 'keras>=3.10'"


def named(name: str | None) -> Gpus:
    return replace(OLD_H100, devices=(replace(OLD_H100.devices[0], name=name),))


test_driver_for_ptx = table(
    "versions.driver-for-ptx",
    Severity.ERROR,
    # PTX 8.5 came with CUDA 12.5, and that with 555.42.02 (PTX ISA; CUDA release notes, table 3)
    passes(driver("555.42.02", "12.5")),
    passes(driver("580.65.06"), f"pass {GPU0}: ", "driver 580.65.06 compiles it (555.42.02 and newer do)"),
    fails(
        driver("535.161.08", "12.2"),
        "555.42.02",
        "; sudo apt-get install nvidia-driver-555;",
        "nvidia-driver-535=535.161.08-*",
    ),
    unknown(driver("535.161.08", "12.5"), "is too old, but supports CUDA 12.5; cuda-compat may bridge the gap."),
    *UNREAD,
    passes(driver("535.161.08", "12.2", "8.0"), said={GPU0: "machine code for 8.0; needs no PTX"}),
    for_hopper(fails, "2.21.0", "535.161.08"),
    for_hopper(fails, "2.20.0", "550.54.15"),
    for_hopper(passes, "2.19.1", "555.42.02"),
    for_hopper(fails, "2.18.1", "535.161.08"),
    for_hopper(passes, "2.18.1", "545.23.06"),
    for_hopper(passes, "2.16.2", "525.60.13"),
    passes(
        tensorflow(version="2.99.0", cuda_version="12.5", compute_capabilities=("sm_80", "compute_80")),
        driver("580.65.06", "13.0", "9.0"),
        "needs PTX of CUDA 12.5;",
    ),
    passes(driver("580.65.06", "13.0", "9.0"), "needs PTX 8.5;"),
    # cuda-compat-12-5 works on branch 535 and data-center GPUs; 2.16.2 has PTX 8.0 for Hopper.
    fails(OLD_H100, COMPAT, "driver 555.42.02", commands=(OLDER_RELEASE,)),
    fails(named(None), COMPAT, commands=(OLDER_RELEASE,)),  # all models of 9.0 are for data centers
    unknown(UNLISTED, "neither the build nor"),
    unknown(replace(UNLISTED, unreadable="gone"), "gone"),
    unknown(tensorflow(version="2.99.0", cuda_version=None), of=["tensorflow"]),
    unknown(tensorflow(version="2.99.0", compute_capabilities=()), of=["tensorflow"]),
    unknown(tensorflow(version="2.99.0", cuda_version="14.0")),
    unknown(driver("580.65.06", "13.0", "ten")),
    unknown(WINDOWS),
    unknown(gpus(0, devices=(), count=0)),
    given=(*NODE, driver("580.65.06")),
)


def test_package_of_nvidia_is_offered_for_data_center_gpus_only() -> None:
    assert COMPAT not in judged("versions.driver-for-ptx", *NODE, named("NVIDIA 9")).findings[0].finding.remedy.summary


def test_finding_stays_as_it_is_if_the_machine_is_not_known() -> None:
    found = judged("versions.driver-for-ptx", *NODE, OLD_H100).findings[0].finding
    device = OLD_H100.devices[0]
    for one, all_of_them in (
        (replace(device, compute_capability=None), OLD_H100),
        (device, replace(OLD_H100, driver_version=None)),
    ):
        assert with_alternatives(found, one, all_of_them, packages(), target(), shipped_matrix()) is found


def of(capability: str | None, **changes: Any) -> Gpus:
    return gpus(1, gpu(0, compute_capability=capability, **changes))


def build(version: str, *capabilities: str) -> FactGroup:
    return tensorflow(version=version, compute_capabilities=capabilities)


NO_CODE = "TensorFlow 2.21.0 has no code for this GPU"
CRASHES = b"""
- id: some_crash
  when: {tensorflow: "==2.99.0rc1", capability: "==9.0"}
  effect: crash
  symptom: it crashes
  ended_by: {tensorflow: ">=2.99.1"}
  fix: tensorflow 2.99.1
  source: seen here
"""

test_gpu_code = table(
    "versions.gpu-code",
    Severity.ERROR,
    # cubins of 2.21: 6.0, 7.0, 8.0, 8.9, 9.0, and PTX of 9.0; measured in the wheel
    *(passes(of(capability)) for capability in ("6.1", "7.5", "8.6", "9.0", "10.0", "12.0")),
    fails(
        of("5.2"),
        "5.2",
        "6.0, 7.0, 8.0, 8.9; PTX for 9.0",
        f"; {INSTALL} 'tensorflow[and-cuda]==2.16.2'",
        of=[GPU0],
        briefs=[NO_CODE],
        rollback=(f"{INSTALL} tensorflow==2.21.0",),
    ),
    fails(
        of("5.2"),
        tensorflow(distribution="tf-nightly"),
        packages(package("tf-nightly", "2.21.0"), package("keras", "3.15.1")),
        rollback=(f"{INSTALL} tf-nightly==2.21.0",),
    ),
    fails(of("5.2", name=None), ": GPU has compute"),
    fails(of("1.0"), commands=(f"{INSTALL} 'tensorflow[and-cuda]'",)),  # no release has code for it
    fails(
        of("10.0"),
        tensorflow(version="2.19.1"),
        "CUDA_ERROR_INVALID_PTX",
        f"; {INSTALL} 'tensorflow[and-cuda]==2.21.0'",
        briefs=["TensorFlow 2.19.1 crashes on this GPU"],
    ),
    fails(
        tensorflow(version="2.99.0rc1", cuda_version="12.5", compute_capabilities=("sm_90",)),
        loads(shipped_text() + CRASHES),
        "TensorFlow 2.99.0rc1 is known to fail on it: it crashes.",
    ),
    # A build that does not state its architectures is looked up in the matrix.
    passes(of("5.2"), build("2.16.2")),
    fails(of("5.2"), build("2.17.1"), "from the version matrix"),
    passes(of("5.2"), build("2.99.0", "sm_50", "sm_60", "sm_70", "sm_80", "compute_90")),
    unknown(UNLISTED, "neither the build nor", of=["tensorflow 2.99.0"]),
    unknown(replace(UNLISTED, unreadable="gone"), "gone"),
    unknown(replace(UNLISTED, version=None), of=["tensorflow (version unknown)"]),
    unknown(of("nine")),
    unknown(of(None)),
    unknown(gpus(0, state="ready", devices=(), count=0)),
    given=NODE,
)
