from __future__ import annotations

import pytest

from helpers.facts import PYTHON, package, packages, smoke_run, target
from kdoctor.facts import Packages, SmokeRun, Unavailable
from kdoctor.model import Finding
from kdoctor_checks.smoke._imports import damaged_package, import_failed

INSTALLED = packages(
    package("tensorflow", "2.21.0"),
    package("keras", "3.15.1"),
    package("protobuf", "6.33.1"),
    package("numpy", "2.4.6"),
    package("absl-py", "2.3.1"),
    package("odd", None),
)
CHAIN = """Traceback (most recent call last):
  File "/opt/job/lib/python3.11/site-packages/tensorflow/python/util/lazy.py", line 60, in _load
ModuleNotFoundError: No module named 'keras.src.layers'

During handling of the above exception, another exception occurred:
ImportError: Keras cannot be imported. Check that it is installed.
"""
FRAMES = """  File "/opt/job/lib/python3.11/site-packages/tensorflow/__init__.py", line 39, in <module>
  File "/opt/job/lib/python3.11/site-packages/numpy/_core/umath.py", line 7, in <module>
"""


def failed(failure: str, stderr: str | None = None) -> SmokeRun:
    return smoke_run("smoke.baseline", 2, failure=failure, stderr_tail=stderr, tensorflow=None, cases=())


def found(run: SmokeRun, installed: Packages | None = INSTALLED) -> Finding:
    return import_failed(run, run.failure or "", target(), installed or Unavailable(unavailable="not read"))


@pytest.mark.parametrize(
    ("failure", "stderr", "name"),
    [
        ("ModuleNotFoundError: No module named 'google.protobuf.internal'", None, "protobuf"),
        ("ImportError: cannot import name 'runtime_version' from 'google.protobuf' (/opt/x.py)", None, "protobuf"),
        ("AttributeError: module 'numpy' has no attribute 'exceptions'", None, "numpy"),
        ("ModuleNotFoundError: No module named 'absl.logging'", None, "absl-py"),
        ("ImportError: Keras cannot be imported. Check that it is installed.", CHAIN, "keras"),
        ("ImportError: /opt/job/x.so: undefined symbol: y", FRAMES, "numpy"),
        ("ModuleNotFoundError: No module named 'jax'", FRAMES, None),  # not installed: nothing to reinstall
        ("ModuleNotFoundError: No module named 'odd'", None, None),  # its version is unknown
        ("SystemError: something", None, None),
    ],
)
def test_package_whose_files_fail_is_found(failure: str, stderr: str | None, name: str | None) -> None:
    package = damaged_package(failed(failure, stderr), INSTALLED)
    assert (package.name if package else None) == name


def test_damaged_package_is_reinstalled_in_its_version() -> None:
    finding = found(failed("ModuleNotFoundError: No module named 'google.protobuf.internal'"))
    assert "protobuf 6.33.1" in finding.brief
    assert finding.remedy.commands == (f"{PYTHON} -m pip install --force-reinstall --no-deps protobuf==6.33.1",)
    assert finding.remedy.look[0].startswith(f"{PYTHON} -X faulthandler")


def test_unknown_error_reinstalls_the_framework() -> None:
    finding = found(failed("SystemError: something"))
    assert finding.brief == "something"
    assert finding.remedy.commands == (
        f"{PYTHON} -m pip install --force-reinstall --no-deps tensorflow==2.21.0 keras==3.15.1",
    )


@pytest.mark.parametrize("failure", ["terminated by SIGILL in import", "hung and was ended after 240 s"])
def test_crash_or_hang_is_only_looked_at(failure: str) -> None:
    assert found(failed(failure)).remedy.commands == ()


def test_without_facts_about_packages_nothing_is_reinstalled() -> None:
    finding = found(failed("ModuleNotFoundError: No module named 'numpy.core'"), None)
    assert finding.remedy.commands == ()
    assert finding.remedy.look
