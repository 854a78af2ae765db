"""Compatibility of TensorFlow releases with machines, for cases with a measured or documented answer."""

from dataclasses import replace

from helpers.cases import cases
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.known_bad import overlap
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.values import specifier
from kdoctor.matrix.verdict import Machine, Verdict

MATRIX = load_matrix(environ={})


def machine(driver: str | None = "580.95.05", *gpus: str, python: str | None = "3.11") -> Machine:
    return Machine(driver=driver, gpus=tuple(find_gpu(MATRIX, gpu) for gpu in gpus), python=python)


def judged(given: Machine) -> dict[str, Verdict]:
    return {verdict.release.version: verdict for verdict in compatible(MATRIX, given)}


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


def test_build_that_numpy_2_breaks_gets_a_pin() -> None:
    found = judged(machine("535.161.08", "A100", python="3.10"))
    assert "numpy<2" in found["2.14.0"].requirements
    assert "numpy<2" in found["2.10.1"].requirements
    assert "numpy<2" not in found["2.14.1"].requirements


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


def test_known_failures_of_tensorflow_do_not_concern_jax() -> None:
    for verdict in compatible(MATRIX.of("jax"), machine("580.95.05", "B200", python="3.12")):
        assert not {reason.failure for reason in verdict.reasons} & {"blackwell_invalid_ptx", "blackwell_xla_ptx85"}
