"""The machine that ``kdoctor matrix`` judges, from options and from the files of a machine."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, package, packages, target
from helpers.matrices import with_driver
from kdoctor.errors import UsageError
from kdoctor.facts import Gpu, Gpus, Packages, Target
from kdoctor.matrix import machine as module
from kdoctor.matrix.compatibility import best as newest
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.machine import Asked, Found, describe

MATRIX = load_matrix(environ={})
REAL_PLATFORM = module._platform
H100 = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 93\n"


@pytest.fixture(autouse=True)
def _platform_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_platform", lambda: "linux-x86_64")


def asked(root: Path, **options: Any) -> Found:
    return describe(MATRIX, Asked(**{"python": "3.11", **options}), {}, root=root)


def facts(found: Found) -> dict[str, tuple[str, str]]:
    return {fact.label: (fact.value, fact.origin) for fact in found.facts}


@cases(
        ({}, False), ({"gpus": ("A100",)}, True), ({"driver": "535"}, True), ({"python": "3.11"}, True),
        ({"platform": "wsl2"}, True), ({"glibc": "2.28"}, True), ({"cuda": "12.4"}, True), ({"cudnn": "9.3"}, True),
)  # fmt: skip
def test_any_option_describes_a_machine(options: dict[str, Any], *, expected: bool) -> None:
    assert Asked(**options).anything is expected


@cases(
    ("535.161.08", "535.161.08", "535.161.08"),
    (" R535.161.08 ", "535.161.08", "535.161.08"),
    ("535", "535", "535, the newest release of this branch"),
    ("100", "100", "100, the newest release of this branch"),
    ("9999.1", "9999.1", "9999.1"),
)
def test_driver_is_a_version_or_a_branch(tmp_path: Path, text: str, driver: str, shown: str) -> None:
    found = asked(tmp_path, driver=text)
    assert found.machine.driver == driver
    assert facts(found)["Driver"] == (shown, "--driver")


@pytest.mark.parametrize("text", ["99", "10000", "", "new", "535.x", "-5"])
def test_other_drivers_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="not an NVIDIA driver version"):
        asked(tmp_path, driver=text)


def test_driver_and_gpus_are_read_from_files(tmp_path: Path) -> None:
    found = asked(with_driver(tmp_path, H100, H100, "Model: Tesla T4\n"))
    assert found.machine.driver == "535.161.08"
    assert [gpu.capability for gpu in found.machine.gpus or ()] == ["9.0", "9.0", "7.5"]
    assert facts(found)["Driver"] == ("535.161.08", "the loaded kernel module")
    assert facts(found)["GPUs"] == (
        "2 x NVIDIA H100 80GB HBM3, compute capability 9.0; Tesla T4, compute capability 7.5",
        "/proc/driver/nvidia/gpus",
    )


def test_open_module_states_its_version_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("550.54.15\n")
    assert (asked(tmp_path).machine.driver or "").strip() == "550.54.15"


def test_machine_without_a_driver_is_for_the_cpu(tmp_path: Path) -> None:
    found = asked(tmp_path)
    assert (found.machine.driver, found.machine.gpus, found.machine.for_cpu) == (None, (), True)
    assert facts(found)["Driver"][0] == "unknown"
    assert facts(found)["GPUs"][0] == "none"


def test_gpus_are_unknown_where_only_a_driver_or_a_platform_is_given(tmp_path: Path) -> None:
    for options in ({"driver": "535"}, {"platform": "wsl2"}):
        found = asked(tmp_path, **options)
        assert found.machine.gpus is None
        assert facts(found)["GPUs"] == ("unknown", "none given; see --gpu")
    assert asked(tmp_path, cuda="12.4").machine.gpus == ()


def test_driver_without_gpus_leaves_them_unknown(tmp_path: Path) -> None:
    found = asked(with_driver(tmp_path))
    assert found.machine.gpus is None
    assert facts(found)["GPUs"][1] == "the driver reports none; see --gpu"
    windows = tmp_path / "wsl"
    (windows / "dev").mkdir(parents=True)
    (windows / "dev/dxg").touch()
    assert asked(windows).machine.gpus is None


def test_unknown_and_nameless_gpus_are_kept(tmp_path: Path) -> None:
    found = asked(with_driver(tmp_path, H100, "Model: NVIDIA X9000\n", "IRQ: 93\n"))
    assert found.machine.unnamed_gpus == ("NVIDIA X9000", "a GPU without a name")
    assert len(found.machine.gpus or ()) == 1
    assert "NVIDIA X9000, not in the matrix" in facts(found)["GPUs"][0]
    with pytest.raises(UsageError):
        asked(tmp_path / "other", gpus=("NVIDIA X9000",))


def test_named_gpus_take_the_place_of_those_of_the_machine(tmp_path: Path) -> None:
    found = asked(with_driver(tmp_path, H100), gpus=("A100", "A100"))
    assert [gpu.capability for gpu in found.machine.gpus or ()] == ["8.0", "8.0"]
    assert facts(found)["GPUs"] == ("2 x A100, compute capability 8.0", "--gpu")


def test_c_library_belongs_to_this_machine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_glibc", lambda: "2.35")
    here = asked(tmp_path)
    assert (here.machine.glibc, facts(here)["glibc"]) == ("2.35", ("2.35", "this machine"))
    for options in ({"driver": "535"}, {"gpus": ("A100",)}, {"platform": "wsl2"}):
        other = asked(tmp_path, **options)
        assert other.machine.glibc is None
        assert "glibc" not in facts(other)


def test_c_library_may_be_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_glibc", lambda: None)
    assert asked(tmp_path).machine.glibc is None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/ld-musl-x86_64.so.1").touch()
    assert facts(asked(tmp_path))["C library"] == ("musl", "this machine")
    for text, libc in (("musl", "musl"), (" glibc 2.28", "2.28"), ("2.17", "2.17")):
        assert asked(tmp_path, glibc=text, gpus=("A100",)).machine.glibc == libc
    with pytest.raises(UsageError, match="--glibc"):
        asked(tmp_path, glibc="new")


@cases(("fpu sse4_2 avx avx2", False), ("fpu sse4_2", True), (None, False))
def test_processor_without_avx(tmp_path: Path, flags: str | None, *, lacking: bool) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"flags\t\t: {flags}\n" if flags else "Features\t: fp asimd\n")
    assert asked(tmp_path).machine.without_avx is lacking
    assert asked(tmp_path, gpus=("A100",)).machine.without_avx is False


@pytest.mark.parametrize("name", ["none", "CPU"])
def test_no_gpu_is_a_machine_without_one(tmp_path: Path, name: str) -> None:
    found = asked(with_driver(tmp_path, H100), gpus=(name,))
    assert (found.machine.gpus, found.machine.for_cpu, found.machine.platform) == ((), True, "linux-x86_64")
    assert "Driver" not in facts(found)


@cases(("3.14t", "3.14", True), ("3.14", "3.14", False))
def test_python_may_be_free_threaded(tmp_path: Path, text: str, version: str, *, free: bool) -> None:
    found = asked(tmp_path, python=text)
    assert (found.machine.python, found.machine.free_threaded, facts(found)["Python"][0]) == (version, free, text)


@cases(("glibc 2.35", "2.35"), ("musl 1.2", None), ("glibc stable", None), ("", None), (None, None))
def test_version_of_the_c_library(monkeypatch: pytest.MonkeyPatch, answer: str | None, expected: str | None) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: answer)
    assert module._glibc() == expected


def test_platform_of_this_machine_is_judged_unless_another_is_described(tmp_path: Path) -> None:
    assert asked(tmp_path).machine.platform == "linux-x86_64"
    assert "Platform" not in facts(asked(tmp_path))
    assert asked(tmp_path, driver="535").machine.platform is None
    assert asked(tmp_path, gpus=("A100",)).machine.platform is None
    given = asked(tmp_path, platform=" WSL2 ")
    assert (given.machine.platform, facts(given)["Platform"]) == ("wsl2", ("wsl2", "--platform"))
    with pytest.raises(UsageError, match="--platform"):
        asked(tmp_path, platform="windoze")


def test_gpus_of_arm_machines_imply_their_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = asked(tmp_path, gpus=("GH200",))
    assert arm.machine.platform == "linux-aarch64"
    assert facts(arm)["Platform"] == ("linux-aarch64", "these GPUs come with Arm processors")
    assert asked(tmp_path, gpus=("GH200", "H100")).machine.platform is None
    assert asked(tmp_path, gpus=("GH200",), platform="linux-x86_64").machine.platform == "linux-x86_64"
    monkeypatch.setattr(module, "_platform", lambda: "linux-aarch64")
    assert facts(asked(tmp_path))["Platform"] == ("linux-aarch64", "this machine")


@pytest.mark.parametrize("text", ["3", "2.7", "4.0", "3.11.7.1", "three", ""])
def test_other_versions_of_python_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="not a Python 3 version"):
        asked(tmp_path, python=text)


@cases(
    (("tensorflow",), "none", "2.21.0", False),
    (("tensorflow-cpu",), "none", "2.21.0", False),
    (("tensorflow-cpu",), "A100", None, True),
    (("tensorflow", "tensorflow-cpu"), "none", "2.21.0", True),
    ((), "none", None, False),
)
def test_command_replaces_another_tensorflow_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: tuple[str, ...], gpu: str, installed: str | None,
    *, replaces: bool,
) -> None:  # fmt: skip
    there = packages(package("pip"), *(package(name, "2.21.0") for name in names))
    python = "/opt/job/bin/python"
    chosen = SimpleNamespace(python=python, version="3.11.7", chosen_by="--python", stand_in=False)
    monkeypatch.setattr(module, "choose_target", lambda *_: chosen)
    monkeypatch.setattr(module, "begin_facts", lambda *_: lambda: {Target: target(), Packages: there})
    found = asked(tmp_path, python=python, gpus=(gpu,), driver="580.95")
    assert found.installed == installed
    assert facts(found)["Python"] == ("3.11.7", f"{python}, --python")
    shown = ", ".join(f"{name} 2.21.0" for name in names) or "no TensorFlow"
    assert facts(found)["Installed"] == (shown, "site-packages")
    best = newest(compatible(MATRIX, found.machine))
    assert best is not None
    assert (best.removal is not None) is replaces
    for command in best.commands[: 1 + replaces]:
        assert command.startswith(f"{python} -m pip {'un' if command == best.removal else ''}install ")
    assert all(name in (best.removal or name) for name in names)
    chosen.stand_in = True
    alone = asked(tmp_path, python=None).machine
    assert (alone.interpreter, alone.target) == ("python", None)


def test_environment_without_pip_is_changed_with_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = replace(packages(has_pip=False), has_uv=True)
    monkeypatch.setattr(module, "begin_facts", lambda *_: lambda: {Target: target(), Packages: there})
    found = newest(compatible(MATRIX, asked(tmp_path, python=sys.executable, gpus=("none",)).machine))
    assert found is not None
    assert found.command.startswith(f"uv pip install --python {sys.executable} tensorflow==")


def nvml(monkeypatch: pytest.MonkeyPatch, *devices: Gpu) -> Any:
    """The GPUs that the matrix takes from NVML, which lists these."""
    monkeypatch.setattr(module, "collect_facts", lambda *_: {Gpus: gpus(len(devices), *devices)} if devices else {})
    return module._nvml_gpus(MATRIX, {})


def test_nvml_names_gpus_and_their_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = gpu(2, name="X1", compute_capability="99.0")
    found = nvml(monkeypatch, gpu(0), gpu(1), odd, gpu(3, compute_capability=None))
    assert [(item.name, item.capability) for item in found.gpus] == [("NVIDIA H100 80GB HBM3", "9.0")] * 2
    assert found.unnamed == ("X1 (compute capability 99.0)", "NVIDIA H100 80GB HBM3 (compute capability unknown)")
    assert found.fact.origin == "NVML"
    nameless = nvml(monkeypatch, gpu(0, name=None))
    assert [item.name for item in nameless.gpus] == ["GPU 0 (0000:10:00.0)"]
    assert nvml(monkeypatch) is None
    monkeypatch.setattr(module, "collect_facts", lambda *_: {Gpus: gpus(0)})
    assert module._nvml_gpus(MATRIX, {}) is None


@cases(("win32", "AMD64", "windows"), ("darwin", "arm64", "macos"), ("darwin", "x86_64", "macos-x86_64"))
def test_other_systems_are_platforms(monkeypatch: pytest.MonkeyPatch, name: str, processor: str, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=processor))
    assert REAL_PLATFORM() == platform


@pytest.mark.parametrize(("has_dxg", "platform"), [(True, "wsl2"), (False, f"linux-{os.uname().machine}")])
def test_linux_is_wsl2_if_it_has_the_device_of_windows(
    monkeypatch: pytest.MonkeyPatch, *, has_dxg: bool, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "exists", lambda path: has_dxg and str(path) == "/dev/dxg")
    assert REAL_PLATFORM() == platform
