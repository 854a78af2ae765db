"""The printed LD_LIBRARY_PATH makes the loading code of the installed TensorFlow find the libraries of [and-cuda]."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.job_environment import COMPONENTS, JobEnvironment
from helpers.shared_libraries import build
from kdoctor.matrix.compatibility import judge
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.verdict import Machine, Verdict

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="the loader is Linux'")]

MATRIX = load_matrix(environ={})
ASK = """\
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
function = library._ZN3tsl8internal9DsoLoader22TryDlopenCUDALibrariesEv
function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
function(ctypes.create_string_buffer(64))
"""
"""Calls the function with which TensorFlow decides whether it registers GPUs. It logs what it opened."""


@pytest.fixture
def verdict() -> Verdict:
    if find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    release = MATRIX.release(metadata.version("tensorflow"))
    if release is None:
        pytest.skip("the matrix has no row for the installed TensorFlow")
    machine = Machine(driver="580.95.05", gpus=(find_gpu(MATRIX, "A100"),), python="3.11")
    return judge(MATRIX, release, machine)


@pytest.fixture
def job(tmp_path: Path) -> JobEnvironment:
    """The installed TensorFlow's library, next to dummy NVIDIA wheels."""
    spec = find_spec("tensorflow")
    assert spec is not None
    assert spec.submodule_search_locations
    environment = JobEnvironment(tmp_path / "job")
    environment.tensorflow.mkdir(parents=True)
    name = "libtensorflow_framework.so.2"
    shutil.copy(Path(spec.submodule_search_locations[0]) / name, environment.tensorflow / name)
    for folder, soname, _ in COMPONENTS.values():
        build(environment.site / "nvidia" / folder / "lib" / soname)
    return environment


def opened(job: JobEnvironment, variables: Mapping[str, str]) -> set[str]:
    argv = [str(job.python), "-c", ASK, str(job.tensorflow / "libtensorflow_framework.so.2")]
    environ = job.environ(TF_CPP_MAX_VLOG_LEVEL="1", **variables)
    end = subprocess.run(argv, capture_output=True, text=True, env=environ, check=True)
    return set(re.findall(r"Successfully opened dynamic library (\S+)", end.stderr))


def exported(job: JobEnvironment, command: str) -> str:
    """The value that the printed command gives the variable, in a shell whose ``python`` is the job's."""
    environ = job.environ(PATH=f"{job.python.parent}:/usr/bin:/bin")
    environ.pop("LD_LIBRARY_PATH", None)
    argv = ["bash", "-c", f"{command}; echo $LD_LIBRARY_PATH"]
    return subprocess.run(argv, capture_output=True, text=True, env=environ, check=True).stdout.strip()


def test_printed_commands_give_a_gpu(job: JobEnvironment, verdict: Verdict) -> None:
    wanted = {COMPONENTS[name][1] for name in MATRIX.registering}
    assert verdict.outcome == "runs"
    before = opened(job, {})
    lacking = {COMPONENTS[folder][1] for folder in verdict.hidden_folders}
    assert wanted - before == lacking
    after = opened(job, {"LD_LIBRARY_PATH": exported(job, verdict.export)}) if verdict.export else before
    assert after >= wanted
