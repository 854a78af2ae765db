"""Libraries of real NVIDIA wheels: kdoctor predicts what TensorFlow's loading code opens.

The version matrix (library_resolution) has the measured versions and encodings.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.job_environment import JobEnvironment
from kdoctor.facts import Libraries, Library
from kdoctor.probes import libraries as probe
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children

pytestmark = [pytest.mark.wheels, pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA's wheels are for Linux")]

WHEELS = (
    "nvidia-cuda-runtime-cu12==12.9.79",
    "nvidia-nvjitlink-cu12==12.9.86",
    "nvidia-cublas-cu12==12.5.3.2",  # another CUDA minor than cuSOLVER: a known-bad combination
    "nvidia-cufft-cu12==11.4.1.4",
    "nvidia-cusolver-cu12==11.7.5.82",
    "nvidia-cusparse-cu12==12.5.10.65",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-nccl-cu12==2.27.7",
    "nvidia-cuda-cupti-cu12==12.9.79",
    "nvidia-cuda-nvcc-cu12==12.9.86",
)
OTHER_MAJORS = ("nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cuda-runtime==13.0.96")

# TensorFlow calls this function to decide whether it registers GPUs. At VLOG(1) it logs what it opened.
_TENSORFLOW_CODE = """\
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
function = library._ZN3tsl8internal9DsoLoader22TryDlopenCUDALibrariesEv
function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
function(ctypes.create_string_buffer(64))
print("\\n".join({line.split()[-1] for line in open("/proc/self/maps") if "/" in line}))
"""


def install(folder: Path, *requirements: str) -> None:
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", "--target", str(folder)]
    subprocess.run([*argv, *requirements], check=True)


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobEnvironment]:
    """The wheels, with the library and the build files of the real TensorFlow."""
    spec = find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("TensorFlow is not installed")
    source = Path(spec.submodule_search_locations[0])
    folder = tmp_path_factory.mktemp("wheels")
    environment = JobEnvironment(folder / "job")
    for name in (
        "libtensorflow_framework.so.2",
        "python/platform/build_info.py",
        "include/third_party/gpus/cuda/cuda_config.h",
    ):
        (environment.tensorflow / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, environment.tensorflow / name)
    (environment.tensorflow / "__init__.py").write_text("raise RuntimeError('TensorFlow was imported')\n")
    (environment.site / f"tensorflow-{metadata.version('tensorflow')}.dist-info").mkdir()
    install(environment.site, *WHEELS)
    yield environment
    shutil.rmtree(folder)  # gigabytes


def read(job: JobEnvironment, **variables: str) -> Libraries:
    environ = job.environ(**variables)
    context = Context(python=str(job.python), chosen_by="--python", environ=environ, children=Children())
    facts = probe.collect(context)[Libraries]
    assert isinstance(facts, Libraries), facts
    return facts


def library(facts: Libraries, name: str) -> Library:
    found = facts.find(name)
    assert found is not None
    return found


def ask_tensorflow(job: JobEnvironment, variables: Mapping[str, str]) -> tuple[dict[str, str | None], set[str]]:
    """The error of TensorFlow's loading code for each soname, None if it was opened, and every mapped file."""
    argv = [str(job.python), "-c", _TENSORFLOW_CODE, str(job.tensorflow / "libtensorflow_framework.so.2")]
    environ = job.environ(TF_CPP_MAX_VLOG_LEVEL="1", **variables)
    end = subprocess.run(argv, capture_output=True, text=True, env=environ, check=True)
    said: dict[str, str | None] = dict.fromkeys(re.findall(r"Successfully opened dynamic library (\S+)", end.stderr))
    failure = r"Could not load dynamic library '([^']+)'; dlerror: (.*?)(?:; LD_LIBRARY_PATH.*)?$"
    said |= dict(re.findall(failure, end.stderr, re.MULTILINE))
    return said, set(end.stdout.split())


def agree(job: JobEnvironment, **variables: str) -> Libraries:
    """Ask kdoctor and TensorFlow, and assert the same answer for every library that GPUs need."""
    facts = read(job, **variables)
    said, mapped = ask_tensorflow(job, variables)
    wanted = [entry for entry in facts.libraries if entry.needed_for == "every GPU" and entry.name != "cuda"]
    assert [entry.soname for entry in wanted] == list(
        dict.fromkeys(entry.soname for entry in wanted if entry.soname in said)
    )
    for entry in wanted:
        error = said[entry.soname or ""]
        assert (error is None) == (entry.status == "found" and entry.load_error is None), (entry, error)
        if error is None:
            assert entry.real_path in mapped
        elif entry.load_error:
            assert entry.load_error.rpartition(": ")[2] == error.rpartition(": ")[2]
    return facts


def test_libraries_have_versions_and_packages(job: JobEnvironment) -> None:
    facts = agree(job)
    cudart, cudnn, nccl = (library(facts, name) for name in ("cudart", "cudnn", "nccl"))
    assert (cudart.version, cudart.version_code, cudart.package_version) == ("12.9", 12090, "12.9.79")
    assert (cudnn.version, cudnn.version_code, cudnn.built_with) == ("9.10.2", 91002, "12.9")
    assert (nccl.version, nccl.version_code, nccl.package) == ("2.27.7", 22707, "nvidia-nccl-cu12")
    versions = {name: library(facts, name).version for name in ("cublas", "cublasLt", "cufft", "cusparse")}
    assert versions == {"cublas": "12.5.3", "cublasLt": "12.5.3", "cufft": "11.4.1", "cusparse": "12.5.10"}
    for entry in facts.libraries:
        if entry.status == "found":
            assert entry.found_by == "RUNPATH"
            assert (entry.path or "").startswith(str(job.site / "nvidia"))


def test_tensorflow_2_21_0_does_not_search_the_cusolver_folder(job: JobEnvironment) -> None:
    if metadata.version("tensorflow") != "2.21.0":
        pytest.skip("a defect of the wheel of 2.21.0")
    facts = agree(job)
    cusolver = library(facts, "cusolver")
    assert cusolver.status == "missing"
    assert [copy.found_by for copy in cusolver.other_copies] == ["not searched"]
    assert not any("cusolver" in folder for folder in facts.runpath)


def test_cusolver_does_not_load_with_cublas_of_another_minor(job: JobEnvironment) -> None:
    """cuSOLVER of CUDA 12.9 with cuBLAS of CUDA 12.5 (failure mode mixed_cuda_components)."""
    facts = agree(job, LD_LIBRARY_PATH=str(job.site / "nvidia/cusolver/lib"))
    cusolver = library(facts, "cusolver")
    assert cusolver.found_by == "LD_LIBRARY_PATH"
    assert "undefined symbol: cublasSetEnvironmentMode" in (cusolver.load_error or "")


def test_components_of_one_minor_load(job: JobEnvironment, tmp_path: Path) -> None:
    install(tmp_path, "nvidia-cublas-cu12==12.9.1.4")
    folders = [job.site / "nvidia/cusolver/lib", tmp_path / "nvidia/cublas/lib"]
    facts = agree(job, LD_LIBRARY_PATH=":".join(map(str, folders)))
    assert [entry.name for entry in facts.lacking() if entry.name != "cuda"] == []
    assert (library(facts, "cusolver").version, library(facts, "cublas").version) == ("11.7.5", "12.9.1")
    shutil.rmtree(tmp_path / "nvidia")


def test_ld_library_path_shadows_the_wheel(job: JobEnvironment, tmp_path: Path) -> None:
    install(tmp_path, "nvidia-cuda-runtime-cu12==12.6.77")
    folder = tmp_path / "nvidia/cuda_runtime/lib"
    cudart = library(agree(job, LD_LIBRARY_PATH=str(folder)), "cudart")
    assert (cudart.path, cudart.found_by, cudart.version_code) == (
        str(folder / "libcudart.so.12"),
        "LD_LIBRARY_PATH",
        12060,
    )
    assert [copy.path for copy in cudart.other_copies] == [str(job.site / "nvidia/cuda_runtime/lib/libcudart.so.12")]


@contextmanager
def hidden(path: Path) -> Iterator[None]:
    moved = path.with_name("hidden-by-a-test")
    path.rename(moved)
    try:
        yield
    finally:
        moved.rename(path)


@cases("cuda_runtime/lib/libcudart.so.12", "cufft/lib/libcufft.so.11", "cudnn/lib/libcudnn.so.9")
def test_deleted_library_is_missing(job: JobEnvironment, name: str) -> None:
    with hidden(job.site / "nvidia" / name):
        facts = agree(job)
        missing = next(entry for entry in facts.libraries if entry.soname == Path(name).name)
        assert missing.status == "missing"
        assert str((job.site / "nvidia" / name).parent) in [place.path for place in facts.searched]


def test_deleted_dependency_is_a_load_error(job: JobEnvironment) -> None:
    with hidden(job.site / "nvidia/nvjitlink/lib/libnvJitLink.so.12"):
        cusparse = library(agree(job), "cusparse")
        assert cusparse.status == "found"
        assert "libnvJitLink.so.12: cannot open shared object file" in (cusparse.load_error or "")


def test_truncated_library_is_unusable(job: JobEnvironment, tmp_path: Path) -> None:
    whole = (job.site / "nvidia/cuda_runtime/lib/libcudart.so.12").read_bytes()
    (tmp_path / "libcudart.so.12").write_bytes(whole[: len(whole) // 2])
    facts = read(job, LD_LIBRARY_PATH=str(tmp_path))
    cudart = library(facts, "cudart")
    assert (cudart.status, cudart.path) == ("unusable", str(tmp_path / "libcudart.so.12"))
    assert f"{len(whole) // 2} of" in (cudart.load_error or "")
    assert library(facts, "cudnn").version == "9.10.2"


def test_other_major_versions_are_listed(job: JobEnvironment, tmp_path: Path) -> None:
    install(tmp_path, *OTHER_MAJORS)
    facts = read(job, PYTHONPATH=str(tmp_path))
    cudart = library(facts, "cudart")
    assert cudart.version == "12.9"
    others = [path for path in cudart.other_versions if path.startswith(str(tmp_path))]
    assert others == [
        str(tmp_path / "nvidia/cu13/lib/libcudart.so.13"),
        str(tmp_path / "nvidia/cuda_runtime/lib/libcudart.so.11.0"),
    ]


def test_xla_files_are_found(job: JobEnvironment) -> None:
    found = {str(entry.name): entry for entry in read(job).xla_files}
    inside = {"libdevice": "nvvm/libdevice/libdevice.10.bc", "ptxas": "bin/ptxas"}
    for name, path in inside.items():
        wheel = str(job.site / "nvidia/cuda_nvcc" / path)
        assert wheel in (found[name].path, *found[name].other_copies)
        if found[name].path == wheel:
            assert (found[name].package, found[name].package_version) == ("nvidia-cuda-nvcc-cu12", "12.9.86")
