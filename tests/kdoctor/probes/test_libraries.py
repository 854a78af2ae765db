"""The libraries probe with a real interpreter, real shared libraries and fake TensorFlow files."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.job_environment import COMPONENTS, JobEnvironment, build_library
from helpers.shared_libraries import build
from kdoctor.facts import Libraries, Library, LibraryCopy, Unavailable
from kdoctor.probes import libraries as probe
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import ChildEnd, Children

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="the loader of Linux")]

FOR_EVERY_GPU = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> JobEnvironment:
    """TensorFlow 2.21 with all libraries; copied for each test, because compiling is slow."""
    environment = JobEnvironment(tmp_path_factory.mktemp("template") / "job")
    environment.add_tensorflow()
    environment.add_wheels()
    return environment


@pytest.fixture
def job(template: JobEnvironment, tmp_path: Path) -> JobEnvironment:
    environment = JobEnvironment(tmp_path / "job")
    shutil.copytree(template.site, environment.site, dirs_exist_ok=True)
    return environment


def ask(job: JobEnvironment, **variables: str) -> Libraries | Unavailable:
    environ = job.environ(**variables)
    context = Context(python=str(job.python), chosen_by="--python", environ=environ, children=Children())
    facts = probe.collect(context)[Libraries]
    assert isinstance(facts, (Libraries, Unavailable))
    return facts


def read(job: JobEnvironment, **variables: str) -> Libraries:
    facts = ask(job, **variables)
    assert isinstance(facts, Libraries), facts
    return facts


def library(facts: Libraries, name: str) -> Library:
    found = facts.find(name)
    assert found is not None
    return found


def test_healthy_environment_has_all_libraries(job: JobEnvironment) -> None:
    facts = read(job)
    assert facts.cuda_build
    assert [entry.name for entry in facts.libraries] == ["cuda", *FOR_EVERY_GPU, "nccl", "cupti"]
    assert [entry.name for entry in facts.lacking() if entry.name != "cuda"] == []
    assert {name: library(facts, name).version for name in COMPONENTS} == {
        "cudart": "12.9",
        "cublas": "12.9.1",
        "cublasLt": "12.9.1",
        "cufft": "11.4.1",
        "cusolver": "11.7.5",
        "cusparse": "12.5.10",
        "cudnn": "9.10.2",
        "nccl": "2.27.7",
        "cupti": "28",
    }
    cudnn = library(facts, "cudnn")
    assert cudnn.path == str(job.site / "nvidia/cudnn/lib/libcudnn.so.9")
    assert (cudnn.status, cudnn.found_by, cudnn.version_code, cudnn.built_with) == ("found", "RUNPATH", 91002, "12.9")
    assert (cudnn.package, cudnn.package_version) == ("nvidia-cudnn-cu12", "12.9.1")
    assert (facts.path_kind, facts.runpath[0]) == ("RUNPATH", "$ORIGIN/../nvidia/cuda_runtime/lib")
    assert facts.searched[0].path == str(job.site / "nvidia/cuda_runtime/lib")
    kinds = list(dict.fromkeys(place.found_by for place in facts.searched))
    assert kinds == ["RUNPATH", "ld.so.cache", "default directory"]


def test_library_on_ld_library_path_shadows_the_wheel(job: JobEnvironment, tmp_path: Path) -> None:
    shadow = build_library(tmp_path / "cuda/lib64", "cudnn")
    facts = read(job, LD_LIBRARY_PATH=f"/no/such:{shadow.parent}")
    cudnn = library(facts, "cudnn")
    assert (cudnn.path, cudnn.found_by, cudnn.package) == (str(shadow), "LD_LIBRARY_PATH", None)
    wheel = str(job.site / "nvidia/cudnn/lib/libcudnn.so.9")
    assert cudnn.other_copies == (LibraryCopy(path=wheel, found_by="RUNPATH"),)
    assert library(facts, "cublas").found_by == "RUNPATH"
    assert [(place.path, place.exists) for place in facts.searched[:2]] == [
        ("/no/such", False),
        (str(shadow.parent), True),
    ]


def test_deleted_library_is_missing(job: JobEnvironment) -> None:
    (job.site / "nvidia/cufft/lib/libcufft.so.11").unlink()
    facts = read(job)
    cufft = library(facts, "cufft")
    assert (cufft.status, cufft.soname, cufft.path, cufft.version) == ("missing", "libcufft.so.11", None, None)
    assert str(job.site / "nvidia/cufft/lib") in [place.path for place in facts.searched]
    assert [entry.name for entry in facts.lacking() if entry.name != "cuda"] == ["cufft"]


def test_wheel_outside_the_search_path(job: JobEnvironment) -> None:
    """TensorFlow 2.16.1 and 2.21.0 do not search the folders of some installed wheels."""
    job.add_tensorflow(runpath="$ORIGIN/../nvidia/cuda_runtime/lib")
    facts = read(job)
    assert [entry.name for entry in facts.lacking() if entry.name != "cuda"] == [*FOR_EVERY_GPU[1:]]
    copy = LibraryCopy(path=str(job.site / "nvidia/cusolver/lib/libcusolver.so.11"), found_by="not searched")
    assert library(facts, "cusolver").other_copies == (copy,)


@pytest.mark.parametrize(("keep", "message"), [(3000, "3000 of"), (10, "10 bytes"), (0, "0 bytes")])
def test_truncated_library_is_unusable_and_others_are_read(job: JobEnvironment, keep: int, message: str) -> None:
    path = job.site / "nvidia/cublas/lib/libcublas.so.12"
    path.write_bytes(path.read_bytes()[:keep])
    facts = read(job)
    cublas = library(facts, "cublas")
    assert (cublas.status, cublas.path, cublas.version) == ("unusable", str(path), None)
    assert message in (cublas.load_error or "")
    assert library(facts, "cusparse").version == "12.5.10"


def test_library_of_another_architecture_is_skipped_with_reason(job: JobEnvironment) -> None:
    path = job.site / "nvidia/cudnn/lib/libcudnn.so.9"
    data = bytearray(path.read_bytes())
    data[18] = 183 if data[18] != 183 else 62
    path.write_bytes(data)
    cudnn = library(read(job), "cudnn")
    assert cudnn.status == "missing"
    assert [(entry.path, entry.found_by) for entry in cudnn.skipped] == [(str(path), "RUNPATH")]
    assert "another machine" in cudnn.skipped[0].reason


def test_crashing_library_is_reported_and_others_are_read(job: JobEnvironment) -> None:
    crash = "__attribute__((constructor)) static void start(void) { *(volatile int *)0 = 0; }"
    build(job.site / "nvidia/cufft/lib/libcufft.so.11", crash)
    facts = read(job)
    assert library(facts, "cufft").load_error == "the process died of SIGSEGV while it was loaded"
    assert library(facts, "nccl").version == "2.27.7"
    assert "cufft" in [entry.name for entry in facts.lacking()]


def test_nccl_is_built_in_before_2_21(job: JobEnvironment) -> None:
    shutil.rmtree(job.site / "tensorflow-2.21.0.dist-info")
    job.add_tensorflow("2.20.0")
    nccl = library(read(job), "nccl")
    assert (nccl.status, nccl.soname, nccl.path) == ("built-in", None, None)


def test_other_major_version_is_listed(job: JobEnvironment) -> None:
    (job.site / "nvidia/cuda_runtime/lib/libcudart.so.12").unlink()
    other = build(job.site / "nvidia/cu13/lib/libcudart.so.13")
    cudart = library(read(job), "cudart")
    assert cudart.status == "missing"
    assert str(other) in cudart.other_versions


def test_driver_version_is_read_from_file_name_without_loading(job: JobEnvironment, tmp_path: Path) -> None:
    crash = "__attribute__((constructor)) static void start(void) { *(volatile int *)0 = 0; }"
    real = build(tmp_path / "driver/libcuda.so.535.161.08", crash, soname="libcuda.so.1")
    (real.parent / "libcuda.so.1").symlink_to(real.name)
    facts = read(job, LD_LIBRARY_PATH=str(real.parent))
    cuda = library(facts, "cuda")
    assert (cuda.path, cuda.real_path, cuda.version) == (str(real.parent / "libcuda.so.1"), str(real), "535.161.08")
    assert (cuda.load_error, facts.driver_version, facts.driver_is_compat) == (None, "535.161.08", False)
    assert facts.lacking() == ()


@pytest.mark.parametrize("through_a_link", [True, False])
def test_forward_compatibility_driver(job: JobEnvironment, tmp_path: Path, *, through_a_link: bool) -> None:
    real = build(tmp_path / "cuda-12.9/compat/libcuda.so.575.57.08", soname="libcuda.so.1")
    folder = tmp_path / "lib" if through_a_link else real.parent
    folder.mkdir(exist_ok=True)
    (folder / "libcuda.so.1").symlink_to(real)
    facts = read(job, LD_LIBRARY_PATH=str(folder))
    assert (facts.driver_version, facts.driver_is_compat) == ("575.57.08", True)


def test_driver_without_version_in_its_name_is_unknown(job: JobEnvironment, tmp_path: Path) -> None:
    build(tmp_path / "wsl/libcuda.so.1.1", soname="libcuda.so.1").rename(tmp_path / "wsl/libcuda.so.1")
    facts = read(job, LD_LIBRARY_PATH=str(tmp_path / "wsl"))
    assert facts.driver_version is None
    assert "libcuda.so.1" in (library(facts, "cuda").version_error or "")


def test_missing_driver_has_no_version(job: JobEnvironment) -> None:
    facts = read(job)
    if library(facts, "cuda").status != "missing":
        pytest.skip("this machine has an NVIDIA driver")
    assert (facts.driver_version, facts.driver_is_compat) == (None, None)


def test_build_without_cuda_opens_no_libraries(job: JobEnvironment) -> None:
    job.add_tensorflow(is_cuda_build=False)
    facts = read(job)
    assert (facts.cuda_build, facts.libraries) == (False, ())
    assert "CUDA" in (facts.note or "")


def test_names_follow_cuda_version_without_header(job: JobEnvironment) -> None:
    (job.tensorflow / "include/third_party/gpus/cuda/cuda_config.h").unlink()
    named = {entry.name: entry.soname for entry in read(job).libraries}
    assert named == {"cuda": "libcuda.so.1", **{name: soname for name, (_, soname, _) in COMPONENTS.items()}}
    job.add_tensorflow(cuda_version="11.8", cudnn_version="8")
    (job.tensorflow / "include/third_party/gpus/cuda/cuda_config.h").unlink()
    named = {entry.name: entry.soname for entry in read(job).libraries}
    # As in the wheel of TensorFlow 2.12 (its cuda_config.h).
    assert [named[name] for name in FOR_EVERY_GPU] == [
        "libcudart.so.11.0",
        "libcublas.so.11",
        "libcublasLt.so.11",
        "libcufft.so.10",
        "libcusolver.so.11",
        "libcusparse.so.11",
        "libcudnn.so.8",
    ]


def test_cupti_may_have_its_plain_name(job: JobEnvironment) -> None:
    path = job.site / "nvidia/cuda_cupti/lib/libcupti.so.12"
    path.rename(path.with_name("libcupti.so"))
    cupti = library(read(job), "cupti")
    assert (cupti.status, cupti.path) == ("found", str(path.with_name("libcupti.so")))


@cases(
    ("tensorflow", "TensorFlow is not installed"),
    ("tensorflow/python/platform/build_info.py", "build_info.py"),
    ("tensorflow/libtensorflow_framework.so.2", "libtensorflow_framework.so.2 is missing"),
)
def test_unknown_build_is_unavailable(job: JobEnvironment, damage: str, message: str) -> None:
    path = job.site / damage
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    if damage.endswith(".py"):
        (job.tensorflow / "include/third_party/gpus/cuda/cuda_config.h").unlink()
    facts = ask(job)
    assert isinstance(facts, Unavailable)
    assert message in facts.unavailable


def test_damaged_opener_is_unavailable(job: JobEnvironment) -> None:
    (job.tensorflow / "libtensorflow_framework.so.2").write_bytes(b"\x7fELF")
    facts = ask(job)
    assert isinstance(facts, Unavailable)
    assert re.search(r"libtensorflow_framework\.so\.2: .*\b4 bytes", facts.unavailable)


def test_xla_uses_the_folder_in_its_flag(job: JobEnvironment, tmp_path: Path) -> None:
    for root in (tmp_path / "cuda", job.site / "nvidia/cuda_nvcc"):
        (root / "nvvm/libdevice").mkdir(parents=True)
        (root / "nvvm/libdevice/libdevice.10.bc").touch()
        (root / "bin").mkdir()
        (root / "bin/ptxas").touch(0o755)
    named = {
        entry.name: entry for entry in read(job, XLA_FLAGS=f"--xla_gpu_cuda_data_dir={tmp_path / 'cuda'}").xla_files
    }
    for entry in named.values():
        assert (entry.status, entry.found_by) == ("found", "XLA_FLAGS")
        assert (entry.path or "").startswith(str(tmp_path / "cuda/"))
        assert any(path.startswith(str(job.site / "nvidia/cuda_nvcc")) for path in entry.other_copies)
    on_path = {entry.name: entry for entry in read(job, PATH=str(tmp_path / "cuda/bin")).xla_files}["ptxas"]
    assert (on_path.path, on_path.found_by) == (str(tmp_path / "cuda/bin/ptxas"), "PATH")


def end(*records: object, **how: object) -> ChildEnd:
    values = {"exit_code": 0, "signal": None, "timed_out": False, "chatter": "", "stderr": "", "seconds": 1.0, **how}
    return ChildEnd(records=records, **values)  # type: ignore[arg-type]


@cases(
    (end(exit_code=None, signal="SIGKILL"), "SIGKILL"),
    (end({"facts": {"cuda_build": "yes"}}), "Libraries.cuda_build is 'yes'"),
    (end({"error": "no glibc"}), "no glibc"),
    (end("hello"), "exited with status 0"),
)
def test_early_end_is_unavailable(ended: ChildEnd, message: str) -> None:
    facts = probe.read_end(ended)
    assert isinstance(facts, Unavailable)
    assert message in facts.unavailable


def test_each_framework_has_the_file_that_it_loads(job: JobEnvironment, tmp_path: Path) -> None:
    """JAX loads the files of the wheels by their path, torch and TensorFlow what the loader finds."""
    assert {item.framework for item in read(job).frameworks} == {"TensorFlow"}
    build(job.site / "jax_plugins/xla_cuda12/xla_cuda_plugin.so")
    nccl = job.site / "nvidia/nccl/lib/libnccl.so.2"
    (job.site / "torch/lib").mkdir(parents=True)
    bundled = build_library(job.site / "torch/lib", "nccl")
    build(job.site / "torch/lib/libtorch_cuda.so", "int answer;", "-Wl,--no-as-needed,-rpath,$ORIGIN", str(bundled))
    other = build_library(tmp_path / "system", "nccl")

    def paths(**variables: str) -> dict[str, str]:
        found = read(job, **variables).frameworks
        return {item.framework: item.path for item in found if item.soname == "libnccl.so.2"}

    assert paths() == {"TensorFlow": str(nccl), "JAX": str(nccl), "torch": str(bundled)}
    assert paths(LD_LIBRARY_PATH=str(other.parent)) == {
        "TensorFlow": str(other), "JAX": str(nccl), "torch": str(other),
    }  # fmt: skip


def test_file_of_two_wheels_has_both_as_owners(job: JobEnvironment) -> None:
    nccl = job.site / "nvidia/nccl/lib/libnccl.so.2"
    folder = job.site / "nvidia_nccl_cu13-2.28.3.dist-info"
    folder.mkdir()
    (folder / "RECORD").write_text(f"nvidia/nccl/lib/libnccl.so.2,sha256=abc,{nccl.stat().st_size}\n")
    facts = read(job)
    found = next(item for item in facts.frameworks if item.soname == "libnccl.so.2")
    assert sorted(found.packages) == ["nvidia-nccl-cu12==12.9.1", "nvidia-nccl-cu13==2.28.3"]
    assert found.installed_by == "nvidia-nccl-cu13==2.28.3"
    assert library(facts, "nccl").package == "nvidia-nccl-cu13"
