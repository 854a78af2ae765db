"""Each rule of compatibility, by a matrix of a few rows and the values next to its limits."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.matrices import A100, H100, PTX_8_5, SOURCE, bad, release, small_matrix
from kdoctor.matrix.compatibility import coverage, hidden_folders, judge, needed_driver
from kdoctor.matrix.cuda import CudnnSupport
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.kernels import Kernels
from kdoctor.matrix.model import GpuKind, Platform
from kdoctor.matrix.verdict import Machine, Verdict

MACHINE = Machine(driver="560.28.03", gpus=(A100,), python="3.11", glibc="2.31")
V100 = NamedGpu(name="V100", capability="7.0", data_center=True)
UNKNOWN = NamedGpu(name="a GPU of compute capability 13.0", capability="13.0")
KINDS = (
    GpuKind(capability="7.0", architecture="Volta", data_center=("V100",), last_branch=580, source=SOURCE),
    GpuKind(capability="8.0", architecture="Ampere", data_center=("A100",), oldest_driver="450.36", source=SOURCE),
    GpuKind(capability="9.0", architecture="Hopper", data_center=("H100",), oldest_driver="520.61", source=SOURCE),
)


def verdict(machine: Machine = MACHINE, changes: dict[str, Any] | None = None, **of_matrix: Any) -> Verdict:
    one = release("2.0.0", **(changes or {}))
    return judge(small_matrix(one, **of_matrix), one, machine)


def reasons(found: Verdict, *kinds: str) -> list[tuple[str, str]]:
    """Kind and rule of the reasons, without cautions unless they are asked for."""
    wanted = kinds or ("against", "missing")
    return [(reason.kind, reason.rule) for reason in found.reasons if reason.kind in wanted]


@cases(
    (MACHINE, []),
    (replace(MACHINE, python="3.10"), []),
    (replace(MACHINE, python="3.12.7"), []),
    (replace(MACHINE, python="3.13"), [("against", "python")]),
    (replace(MACHINE, python="3.9.1"), [("against", "python")]),
    (replace(MACHINE, python=None), [("missing", "python")]),
    (replace(MACHINE, glibc="2.27"), []),
    (replace(MACHINE, glibc="2.26"), [("against", "glibc")]),
    (replace(MACHINE, glibc="2.3"), [("against", "glibc")]),
    (replace(MACHINE, glibc=None), []),
    (replace(MACHINE, driver="525.60.13"), []),
    (replace(MACHINE, driver="525.60.12"), [("against", "driver")]),
    (replace(MACHINE, driver="525"), []),
    (replace(MACHINE, driver=None), [("missing", "driver")]),
    (replace(MACHINE, gpus=None), [("missing", "gpu")]),
    (replace(MACHINE, unnamed_gpus=("X1", "X2")), [("missing", "gpu"), ("missing", "gpu")]),
    (replace(MACHINE, platform="linux-x86_64"), []),
    (replace(MACHINE, platform="freebsd"), [("missing", "platform")]),
    (Machine(gpus=(), python="3.11"), []),
)
def test_reasons_of_a_machine(machine: Machine, found: list[tuple[str, str]]) -> None:
    assert reasons(verdict(machine)) == found


@cases(
    (V100, "580.95.05", []),
    (V100, "581.10", [("against", "driver")]),
    (V100, None, [("missing", "driver")]),
    (A100, "580.95.05", []),
    (H100, "580.95.05", []),
    (UNKNOWN, "580.95.05", [("missing", "driver")]),
    (UNKNOWN, None, [("missing", "driver")]),
)
def test_driver_of_a_gpu(gpu: NamedGpu, driver: str | None, found: list[tuple[str, str]]) -> None:
    machine = replace(MACHINE, driver=driver, gpus=(gpu,))
    changes = {"cubins": (70, 80), "ptx_isa": "8.5"}
    given = reasons(verdict(machine, changes, gpus=KINDS))
    if driver is None and gpu is UNKNOWN:
        assert set(given) == set(found)  # also the driver for CUDA, and that for its PTX
    else:
        assert list(dict.fromkeys(given)) == found


def test_gpu_that_is_newer_than_the_driver() -> None:
    kinds = (KINDS[0], KINDS[1], KINDS[2].model_copy(update={"oldest_driver": "565.10"}))
    changes = {"cubins": (80, 90)}
    for driver, found in (("565.10", []), ("565", []), ("560.28.03", [("against", "driver")])):
        machine = replace(MACHINE, driver=driver, gpus=(H100,))
        assert reasons(verdict(machine, changes, gpus=kinds)) == found


@cases(
    ({"cubins": (90,)}, "525.60.13", None, None),
    ({}, "555.42.02", "caution", None),
    ({}, "555.42.01", "against", "ptx_newer_than_driver"),
    ({}, None, "missing", "ptx_newer_than_driver"),
    ({"ptx_isa": "9.9"}, "610.1.1", "missing", "ptx_newer_than_driver"),
    ({"ptx_isa": "9.9", "kernel_gen": PTX_8_5}, "610.1.1", "missing", "ptx_newer_than_driver"),  # of one of two kinds
    ({"ptx_isa": "8.5"}, "555.42.02", "caution", None),
    ({"cubins": (90,), "kernel_gen": PTX_8_5}, "550.10", "against", "ptx_newer_than_driver"),
    ({"ptx": ("80a",)}, "610.1.1", "against", None),
    ({"ptx": ()}, "610.1.1", "against", None),
)
def test_code_for_a_newer_gpu(
    changes: dict[str, Any], driver: str | None, kind: str | None, failure: str | None
) -> None:
    found = verdict(replace(MACHINE, gpus=(H100,), driver=driver), changes)
    about_code = [
        reason for reason in found.reasons if (reason.rule == "gpu" or reason.failure == "ptx_newer_than_driver")
    ]
    assert [(reason.kind, reason.failure) for reason in about_code] == ([(kind, failure)] if kind else [])


def test_kernels_without_code_are_named() -> None:
    compiled, generated = Kernels(cubins=(70,), ptx=()), Kernels(cubins=(75, 80), ptx=("90a", "100f", "80"))
    for changes, start in (({"cubins": (70,), "ptx": ()}, "the build has"), ({}, "its generated kernels have")):
        generator = {"kernel_gen": compiled} if not changes else {}
        found = verdict(MACHINE, {**changes, **generator})
        assert [reason.text.startswith(start) for reason in found.against] == [True]
    assert coverage(compiled) == "machine code for compute capability 7.0 to 7.0 and PTX for none"
    assert coverage(generated) == (
        "machine code for compute capability 7.5 to 8.0 and PTX for 9.0 only and 10.0 and its family and 8.0 and newer"
    )
    assert coverage(Kernels(cubins=(), ptx=("90",))).endswith("capability none and PTX for 9.0 and newer")


def test_gpus_of_one_capability_are_judged_once_and_all_others_too() -> None:
    other = replace(A100, name="A30")
    found = verdict(replace(MACHINE, gpus=(A100, other, H100, A100)), {"cubins": (70,), "ptx": ()})
    texts = [reason.text for reason in found.against]
    assert [name in " ".join(texts) for name in ("A100", "A30", "H100")] == [True, False, True]
    assert len(texts) == 2


CUDNN = (
    CudnnSupport(versions="<9.11", cuda=12, capabilities=">=5.0", source=SOURCE),
    CudnnSupport(versions=">=9.11", cuda=12, capabilities=">=7.5", oldest_driver="530.30.02", source=SOURCE),
    CudnnSupport(versions=">=9", cuda=13, capabilities=">=7.5", source=SOURCE),
)
BOTH = {"cubins": (70, 80), "runpath": ("cudnn",)}


@cases(
    (V100, "nvidia-cudnn-cu12>=9.3", "560.28.03", []),  # it may be 9.10
    (V100, "nvidia-cudnn-cu12>=9.11", "560.28.03", [("against", "cudnn")]),
    (A100, "nvidia-cudnn-cu12>=9.11", "560.28.03", []),
    (A100, "nvidia-cudnn-cu12>=9.11", "530.30.02", []),
    (A100, "nvidia-cudnn-cu12>=9.11", "530.30.01", [("against", "driver")]),
    (A100, "nvidia-cudnn-cu12>=9.11", None, [("missing", "driver")]),
    (A100, "nvidia-cudnn-cu12<9.3,>=9.2", "525.60.13", []),
    (A100, "nvidia-cudnn-cu12<8", "560.28.03", []),
    (H100, "nvidia-cudnn-cu12>=10", "560.28.03", []),
)
def test_cudnn_must_have_code_for_the_gpu(
    gpu: NamedGpu, asked: str, driver: str | None, found: list[tuple[str, str]]
) -> None:
    machine = replace(MACHINE, gpus=(gpu,), driver=driver)
    changes = {**BOTH, "and_cuda": (asked,)}
    assert reasons(verdict(machine, changes, gpus=KINDS, cudnn=CUDNN)) == found


@cases(
    (A100, None, []),
    (H100, None, [("missing", "cudnn")]),  # by PTX, and the cuDNN of the system is not known
    (H100, ("nvidia-cudnn-cu12<9",), [("missing", "cudnn")]),  # no row
    (A100, ("nvidia-cudnn-cu12<9",), []),
    (H100, ("nvidia-cudnn-cu12>=9",), []),
)
def test_cudnn_that_is_not_known(gpu: NamedGpu, and_cuda: tuple[str, ...] | None, found: list[tuple[str, str]]) -> None:
    assert reasons(verdict(replace(MACHINE, gpus=(gpu,)), {"and_cuda": and_cuda})) == found


def test_pin_decides_which_cudnn_is_installed() -> None:
    row = bad("x", {"cudnn": ">=9.11", "capability": "<7.5"}, install=("nvidia-cudnn-cu12==9.10.2.21",))
    machine = replace(MACHINE, gpus=(V100,))
    found = verdict(
        machine, {**BOTH, "and_cuda": ("nvidia-cudnn-cu12>=9.11",)}, gpus=KINDS, cudnn=CUDNN, known_bad=(row,)
    )
    assert (found.outcome, found.requirements[1:]) == ("runs", ("nvidia-cudnn-cu12==9.10.2.21",))


@cases(({}, ()), ({"runpath": ("cublas",)}, ("cudnn",)), ({"runpath": (), "and_cuda": None}, ()))
def test_folders_that_are_not_searched(changes: dict[str, Any], folders: tuple[str, ...]) -> None:
    found = verdict(MACHINE, changes)
    assert found.hidden_folders == folders
    assert [reason.failure for reason in found.cautions if reason.failure] == ["tf2161_runpath"] * bool(folders)
    assert len([reason for reason in found.cautions if not reason.failure]) == ("and_cuda" in changes)
    assert verdict(Machine(gpus=(), python="3.11"), changes).hidden_folders == ()
    assert verdict(replace(MACHINE, cuda="12.3"), changes).hidden_folders == ()  # installed on the system
    one = release("2.0.0", **changes)
    assert hidden_folders(replace(small_matrix(one), framework="JAX"), one) == ()


def test_folders_have_the_names_of_the_libraries_except_two() -> None:
    one = release("2.0.0", runpath=("cufft",))
    matrix = small_matrix(one, registering=("cudart", "cublas", "cublasLt", "cufft", "cudnn"))
    assert hidden_folders(matrix, one) == ("cuda_runtime", "cublas", "cudnn")


@cases(
    (MACHINE, {}, ("tensorflow[and-cuda]==2.0.0", "nvidia-cudnn-cu12<9.5", "numpy<2")),
    (MACHINE, {"and_cuda": None}, ("tensorflow==2.0.0", "numpy<2")),
    (Machine(gpus=(), python="3.11"), {}, ("tensorflow==2.0.0", "numpy<2")),
    (replace(MACHINE, cuda="12.5"), {}, ("tensorflow==2.0.0", "numpy<2")),
    (replace(MACHINE, cudnn="9.3"), {}, ("tensorflow==2.0.0", "numpy<2")),
    (
        replace(MACHINE, cuda="12.5"),
        {"distribution": "jax", "extra": "cuda12"},
        ("jax[cuda12-local]==2.0.0", "numpy<2"),
    ),
    (MACHINE, {"distribution": "jax", "extra": "cuda12"}, ("jax[cuda12]==2.0.0", "nvidia-cudnn-cu12<9.5", "numpy<2")),
)
def test_requirements_of_an_installation(
    machine: Machine, changes: dict[str, Any], requirements: tuple[str, ...]
) -> None:
    rows = (
        bad("x", {"numpy": ">=2"}, install=("nvidia-cudnn-cu12<9.5",)),
        bad("y", {"numpy": ">=2"}, install=("numpy<2",)),
    )
    assert verdict(machine, changes, known_bad=rows).requirements == requirements


@cases(
    ({}, (), "525.60.13"),
    ({}, (A100,), "525.60.13"),
    ({}, (H100,), "555.42.02"),
    ({}, (A100, H100), "555.42.02"),
    ({"cubins": (80, 90)}, (H100,), "525.60.13"),
    ({"cuda": "12.7"}, (H100,), None),
    ({"cuda": "12.7"}, (A100,), "525.60.13"),
    ({"cuda": "13.0"}, (A100,), None),
    ({"cubins": (80, 90), "kernel_gen": PTX_8_5}, (H100,), "555.42.02"),
)
def test_oldest_driver_for_gpus(changes: dict[str, Any], gpus: tuple[NamedGpu, ...], driver: str | None) -> None:
    one = release("2.0.0", **changes)
    assert needed_driver(small_matrix(one), one, gpus) == driver


def test_driver_of_a_cuda_without_a_row_is_missing() -> None:
    assert reasons(verdict(MACHINE, {"cuda": "13.0", "and_cuda": None})) == [("missing", "driver")]


def test_oldest_driver_is_that_of_the_newest_gpu() -> None:
    kinds = (KINDS[1], KINDS[2].model_copy(update={"oldest_driver": "1000.1"}))
    one = release("2.0.0", cubins=(80, 90))
    assert needed_driver(small_matrix(one, gpus=kinds), one, (A100, H100)) == "1000.1"


WINDOWS = (Platform(platform="windows", wheels=">=2", gpu=">=2", windows_driver=True, source=SOURCE),)


@cases(
    ("527.41", A100, []),
    ("527.40", A100, [("against", "driver")]),
    ("525.60.13", A100, [("against", "driver")]),
    ("555.10", H100, []),  # only the branch is known
    ("554.99", H100, [("against", "driver")]),
)
def test_drivers_of_windows(driver: str, gpu: NamedGpu, found: list[tuple[str, str]]) -> None:
    machine = replace(MACHINE, driver=driver, gpus=(gpu,), platform="windows", glibc=None)
    assert reasons(verdict(machine, platforms=WINDOWS)) == found


@pytest.mark.parametrize(("python", "shown"), [(">=3.9,<3.10", "Python 3.9,"), (">=3.9,<3.11", "Python 3.9 to 3.10,")])
def test_pythons_with_wheels_are_named(python: str, shown: str) -> None:
    found = verdict(changes={"python": python})
    assert [shown in reason.text for reason in found.reasons if reason.rule == "python"] == [True]
