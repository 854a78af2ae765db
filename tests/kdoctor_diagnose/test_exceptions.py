"""Exceptions of a fit, in this process: the context of ``kdoctor.guard``."""

from importlib.util import find_spec
from unittest.mock import Mock

import pytest

from kdoctor_diagnose.exceptions import describe_exception
from kdoctor_job.preflight import Preflight

KNOWN = "Mixing different tf.distribute.Strategy objects: one is not the other"


def raised(error: Exception) -> Exception:
    """The error with a traceback, chained as Keras does it."""
    try:
        try:
            raise error
        except type(error) as first:
            raise type(error)(f"Exception encountered when calling Layer.call().\n\n{first}") from first
    except type(error) as last:
        return last


def test_known_exception_is_described() -> None:
    text = describe_exception(raised(RuntimeError(KNOWN)))
    assert "traceback:" in text
    assert "strategy.scope()" in text
    assert "kdoctor lint ." in text


def test_unknown_exception_is_not_described() -> None:
    assert describe_exception(raised(KeyError("label"))) == ""


@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")
def test_installed_release_decides() -> None:
    """The message of a defect of Keras 3, which is what is installed here."""
    message = "Attempt to convert a value (PerReplica:{0: 1.0}) with an unsupported type"
    assert "keras 3." in describe_exception(raised(ValueError(message)))


def test_guarded_fit_prints_the_diagnosis_and_raises(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="Mixing"), Preflight(Mock()):
        raise RuntimeError(KNOWN)
    printed = capsys.readouterr()
    assert printed.err.startswith("kdoctor: ")
    assert "strategy.scope()" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("error", [KeyError("label"), KeyboardInterrupt()])
def test_guarded_fit_is_silent_about_other_exceptions(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(error)), Preflight(Mock()):
        raise error
    assert capsys.readouterr().err == ""


def test_guarded_fit_that_succeeds_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Preflight(Mock()) as result:
        pass
    assert isinstance(result, Preflight)
    assert capsys.readouterr().err == ""
