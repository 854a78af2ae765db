"""Version calls of libraries. The tests build fake libraries and load them in real processes."""

import sys
import time
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.shared_libraries import build
from kdoctor_target.inspect import library_versions as versions

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="the loader of Linux")]

CUDART = "int cudaRuntimeGetVersion(int *v) { *v = 12090; return 0; }"
NCCL = "int ncclGetVersion(int *v) { *v = 22707; return 0; }"
CUDNN = (
    "unsigned long cudnnGetVersion(void) { return 91002; } unsigned long cudnnGetCudartVersion(void) { return 12090; }"
)
CRASH = "*(volatile int *)0 = 0;"
HANG = "#include <unistd.h>\n"


def properties(name: str, *numbers: int) -> str:
    listed = ", ".join(map(str, numbers))
    return f"int {name}GetProperty(int i, int *v) {{ int all[] = {{{listed}}}; *v = all[i]; return 0; }}"


@cases(  # as measured on the real libraries, or as their headers define
    (versions.decode_cuda, 12090, "12.9"),
    (versions.decode_cuda, 11080, "11.8"),
    (versions.decode_cuda, 13000, "13.0"),
    (versions.decode_cudnn, 91002, "9.10.2"),
    (versions.decode_cudnn, 90300, "9.3.0"),
    (versions.decode_cudnn, 8904, "8.9.4"),
    (versions.decode_cudnn, 8101, "8.1.1"),
    (versions.decode_nccl, 22707, "2.27.7"),
    (versions.decode_nccl, 20908, "2.9.8"),
    (versions.decode_nccl, 2804, "2.8.4"),
)
def test_encodings(decode: versions.Call, code: int, version: str) -> None:
    assert decode(code) == version  # type: ignore[operator]


def test_each_library_answers_its_version_call(tmp_path: Path) -> None:
    libraries = [
        ("cudart", str(build(tmp_path / "libcudart.so.12", CUDART))),
        ("cublas", str(build(tmp_path / "libcublas.so.12", properties("cublas", 12, 5, 3)))),
        ("cudnn", str(build(tmp_path / "libcudnn.so.9", CUDNN))),
        ("nccl", str(build(tmp_path / "libnccl.so.2", NCCL))),
    ]
    assert versions.read_versions(libraries, 20) == {
        "cudart": {"version": "12.9", "version_code": 12090},
        "cublas": {"version": "12.5.3", "version_code": None},
        "cudnn": {"version": "9.10.2", "version_code": 91002, "built_with": "12.9"},
        "nccl": {"version": "2.27.7", "version_code": 22707},
    }


@cases(
    (
        f"__attribute__((constructor)) static void start(void) {{ {CRASH} }}",
        "load_error",
        "died of SIGSEGV while it was loaded",
    ),
    (
        f"int cublasGetProperty(int i, int *v) {{ {CRASH} return 0; }}",
        "version_error",
        "died of SIGSEGV in its version call",
    ),
    ("#include <stdlib.h>\nint cublasGetProperty(int i, int *v) { abort(); }", "version_error", "died of SIGABRT"),
    ("#include <stdlib.h>\nint cublasGetProperty(int i, int *v) { exit(3); }", "version_error", "exited with status 3"),
    ("int cublasGetProperty(int i, int *v) { return 7; }", "version_error", "cublasGetProperty failed with status 7"),
    ("int other;", "version_error", "undefined symbol: cublasGetProperty"),
    ("int gone(void); int cublasGetProperty(int i, int *v) { return gone(); }", "load_error", "undefined symbol: gone"),
)
def test_failing_library_does_not_affect_others(tmp_path: Path, source: str, key: str, message: str) -> None:
    libraries = [
        ("cudart", str(build(tmp_path / "libcudart.so.12", CUDART))),
        ("cublas", str(build(tmp_path / "libcublas.so.12", source))),
        ("nccl", str(build(tmp_path / "libnccl.so.2", NCCL))),
    ]
    answers = versions.read_versions(libraries, 20)
    assert (answers["cudart"]["version"], answers["nccl"]["version"]) == ("12.9", "2.27.7")
    assert set(answers["cublas"]) == {key}
    assert message in answers["cublas"][key]


@cases("int cublasGetProperty(int i, int *v)", "__attribute__((constructor)) static void start(void)")
def test_hanging_library_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(versions, "STEP_S", 0.4)
    libraries = [
        ("cublas", str(build(tmp_path / "libcublas.so.12", f"#include <unistd.h>\n{where} {{ for (;;) pause(); }}"))),
        ("nccl", str(build(tmp_path / "libnccl.so.2", NCCL))),
    ]
    answers = versions.read_versions(libraries, 20)
    assert answers["nccl"]["version"] == "2.27.7"
    assert set(answers["cublas"]) <= {"load_error", "version_error"}
    assert len(answers["cublas"]) == 1


def test_total_time_limit_is_kept(tmp_path: Path) -> None:
    hanging = "#include <unistd.h>\nint cublasGetProperty(int i, int *v) { for (;;) pause(); }"
    libraries = [
        ("cublas", str(build(tmp_path / "libcublas.so.12", hanging))),
        ("nccl", str(build(tmp_path / "libnccl.so.2", NCCL))),
    ]
    started = time.monotonic()
    answers = versions.read_versions(libraries, 0.5)
    assert time.monotonic() - started < 3
    assert set(answers["nccl"]) == {"version_error"}


def test_loaded_library_is_available_to_the_next(tmp_path: Path) -> None:
    """A loaded library satisfies a dependency with its soname in any folder, if it has the symbols."""
    old = build(tmp_path / "cublas/libcublas.so.12", properties("cublas", 12, 5, 3))
    newer = build(tmp_path / "newer/libcublas.so.12", "int cublasSetEnvironmentMode(int m) { return m; }")
    source = "int cublasSetEnvironmentMode(int); int use(void) { return cublasSetEnvironmentMode(1); }\n"
    source += properties("cusolver", 11, 7, 5)
    solver = build(tmp_path / "cusolver/libcusolver.so.11", source, str(newer))
    answers = versions.read_versions([("cublas", str(newer)), ("cusolver", str(solver))], 20)
    assert answers["cusolver"]["version"] == "11.7.5"
    answers = versions.read_versions([("cublas", str(old)), ("cusolver", str(solver))], 20)
    assert "undefined symbol: cublasSetEnvironmentMode" in answers["cusolver"]["load_error"]
    answers = versions.read_versions([("cusolver", str(solver))], 20)
    assert "libcublas.so.12: cannot open shared object file" in answers["cusolver"]["load_error"]


def test_empty_list_has_no_versions() -> None:
    assert versions.read_versions([], 1) == {}
