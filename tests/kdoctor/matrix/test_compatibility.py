"""Compatibility of TensorFlow releases with machines, for cases with a measured or documented answer."""

from dataclasses import replace

import pytest

from helpers.cases import cases
from kdoctor.matrix.compatibility import best, compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.kernels import weakest
from kdoctor.matrix.known_bad import overlap
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.values import specifier
from kdoctor.matrix.verdict import Machine, Verdict

MATRIX = load_matrix(environ={})


def machine(driver: str | None = "580.95.05", *gpus: str, python: str | None = "3.11") -> Machine:
    return Machine(driver=driver, gpus=tuple(find_gpu(MATRIX, gpu) for gpu in gpus), python=python)


def judged(given: Machine) -> dict[str, Verdict]:
    return {verdict.release.version: verdict for verdict in compatible(MATRIX, given)}


def newest(given: Machine) -> str | None:
    found = best(compatible(MATRIX, given))
    return found.release.version if found else None


def failures(verdict: Verdict) -> set[str | None]:
    return {reason.failure for reason in verdict.against}


@cases(
    ("2.15.1", "9.0", "PTX"),
    ("2.21.0", "9.0", "PTX"),  # its compiled kernels have machine code, the generated ones PTX 8.5
    ("2.21.0", "8.9", "machine code"),
    ("2.21.0", "7.5", "machine code"),
    ("2.15.1", "8.0", "PTX"),
    ("2.16.2", "8.0", "machine code"),
    ("2.20.0", "10.0", None),  # the generated kernels' PTX is for sm_90a, which no newer GPU compiles
    ("2.21.0", "10.0", "PTX"),
    ("2.17.1", "5.2", None),
)
def test_gpu_needs_code_of_both_kinds(version: str, gpu: str, code: str | None) -> None:
    release = MATRIX.release(version)
    assert release is not None
    assert weakest(release.kernels, gpu) == code


@cases(("525.147.05", "does-not-run"), ("530.30.02", "runs"), ("535.54.03", "runs"), ("550.54.14", "runs"))
def test_compiled_kernels_may_have_older_ptx_than_their_cuda(driver: str, outcome: str) -> None:
    """2.15 was built with CUDA 12.2, and clang wrote PTX 8.1, the version of CUDA 12.1."""
    verdict = judged(machine(driver, "H100"))["2.15.1"]
    assert verdict.outcome == outcome
    if outcome == "does-not-run":
        assert failures(verdict) == {"ptx_newer_than_driver"}
    assert judged(machine(driver, "H100"))["2.16.2"].outcome == "runs"


def test_unmeasured_libraries_on_a_newer_gpu_are_unknown() -> None:
    """2.13 takes cuDNN from the system, and the matrix has no row for the cuDNN 8.7 of 2.14."""
    found = judged(machine("535.161.08", "H100", python="3.10"))
    assert found["2.13.1"].outcome == "unknown"
    assert found["2.14.1"].outcome == "unknown"
    assert found["2.15.1"].outcome == "runs"


@pytest.mark.parametrize("gpu", ["B200", "RTX 5090", "NVIDIA RTX PRO 6000 Blackwell Server Edition"])
def test_blackwell_needs_2_21(gpu: str) -> None:
    found = judged(machine("580.95.05", gpu))
    assert found["2.21.0"].outcome == "runs"
    assert "blackwell_invalid_ptx" in failures(found["2.20.0"])
    runs = {version for version, verdict in found.items() if verdict.outcome == "runs" and "dev" not in version}
    assert runs == {"2.21.0", "2.22.0rc0"}


def test_xla_on_a_5090_is_a_caution() -> None:
    cautions = {reason.failure for reason in judged(machine("580.95.05", "RTX 5090"))["2.21.0"].cautions}
    assert "blackwell_xla_ptx85" in cautions
    assert "blackwell_xla_ptx85" not in {
        reason.failure for reason in judged(machine("580.95.05", "H100"))["2.21.0"].cautions
    }


@pytest.mark.parametrize("gpu", ["V100", "P100", "GTX 1080 Ti"])
@pytest.mark.parametrize("version", ["2.20.0", "2.21.0"])
def test_gpus_before_turing_get_the_last_cudnn_with_code_for_them(gpu: str, version: str) -> None:
    verdict = judged(machine("535.161.08", gpu))[version]
    assert verdict.outcome == "runs"
    assert "nvidia-cudnn-cu12==9.10.2.21" in verdict.requirements


def test_turing_is_new_enough_for_the_newest_cudnn() -> None:
    found = judged(machine("535.161.08", "T4"))
    assert "nvidia-cudnn-cu12==9.10.2.21" not in found["2.20.0"].requirements
    assert "nvidia-cudnn-cu12==9.24.0.43" in found["2.21.0"].requirements


def test_cudnn_of_2_21_on_a_v100_is_a_caution() -> None:
    cautions = judged(machine("535.161.08", "V100"))["2.21.0"].cautions
    assert {reason.failure for reason in cautions} == {"cudnn_too_old_tf221", "tf2161_runpath"}


@cases(("2.16.1", ("cublas", "cufft", "cusolver", "cusparse", "cudnn")), ("2.21.0", ("cusolver",)), ("2.20.0", ()))
def test_command_exports_the_folders_that_a_release_does_not_search(version: str, folders: tuple[str, ...]) -> None:
    verdict = judged(machine("580.95.05", "A100"))[version]
    assert verdict.outcome == "runs"
    assert verdict.hidden_folders == folders
    assert len(verdict.commands) == (2 if folders else 1)


def test_k80_never_runs_2_15_or_newer() -> None:
    found = judged(machine("470.256.02", "K80", python="3.10"))
    assert found["2.14.1"].outcome == "runs"
    for version, verdict in found.items():
        if verdict.release.key >= found["2.15.1"].release.key or version.startswith("2.15"):
            assert "gpu" in {reason.rule for reason in verdict.against}, version


@cases(("2.15.0", "tf2150_tensorrt_pins", "3.10"), ("2.14.1", "tf214_tensorrt_pin", "3.11"))
def test_release_whose_extra_pip_cannot_resolve_takes_the_libraries_of_the_system(
    version: str, failure: str, python: str
) -> None:
    """Tried with pip on 2026-11-20."""
    given = machine("535.161.08", "A100", python=python)
    found = judged(given)[version]
    assert (found.outcome, found.requirements) == ("runs", (f"tensorflow=={version}",))
    assert [reason.failure for reason in found.cautions if reason.rule == "libraries"] == [failure]
    with_libraries = judged(replace(given, cuda=found.release.cuda, cudnn=found.release.cudnn))[version]
    assert "libraries" not in {reason.rule for reason in with_libraries.reasons}
    assert with_libraries.outcome == "runs"
    usual = judged(machine("535.161.08", "A100", python="3.10"))["2.14.1"]
    assert usual.requirements == ("tensorflow[and-cuda]==2.14.1",)


def test_ranges_with_an_incorrect_keras_get_a_pin() -> None:
    found = judged(machine("535.161.08", "A100"))
    assert "keras>=3.10" in found["2.16.2"].requirements
    assert "keras>=3.10" in found["2.19.1"].requirements
    assert "keras>=3.10" not in found["2.20.0"].requirements
    assert "keras>=3.10" not in found["2.15.1"].requirements


def test_build_that_numpy_2_breaks_gets_a_pin() -> None:
    found = judged(machine("535.161.08", "A100", python="3.10"))
    assert "numpy<2" in found["2.14.0"].requirements
    assert "numpy<2" in found["2.10.1"].requirements
    assert "numpy<2" not in found["2.14.1"].requirements


def test_builds_without_the_extra_need_cuda_on_the_system() -> None:
    verdict = judged(machine("535.161.08", "A100"))["2.13.1"]
    assert verdict.command == "python -m pip install tensorflow==2.13.1"
    assert any("CUDA 11.8" in reason.text for reason in verdict.cautions)


def test_unknown_facts_are_never_a_pass() -> None:
    for given in (
        machine(None, "A100"),
        machine("535.161.08", "A100", python=None),
        Machine(driver="535.161.08", gpus=None, python="3.11"),
        Machine(driver="535.161.08", gpus=(), unnamed_gpus=("NVIDIA X1",), python="3.11"),
        Machine(),
    ):
        assert newest(given) is None
        assert judged(given)["2.21.0"].outcome == "unknown"
        assert judged(given)["2.21.0"].missing


@cases(
    (">=1,<2", ">=2", False),
    (">=1,<=2", ">=2", True),
    (">=9.3.0.75,<10", ">=9.11", True),
    ("==9.3.0.75", ">=9.11", False),
    (">1", "<2", True),
    (">=3.0", "<3.10", True),
    (">=3.10", "<3.10", False),
    ("!=1.0,>=1.0", "==1.0", False),
    ("~=0.3.1", ">=0.4", False),
    ("==2.16.*", ">=2.16.2", True),
    ("", ">=5", True),
)
def test_overlap_of_specifiers_is_symmetric(first: str, second: str, *, expected: bool) -> None:
    assert overlap(specifier(first), specifier(second)) is expected
    assert overlap(specifier(second), specifier(first)) is expected
