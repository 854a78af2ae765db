"""The checks of cuDNN and of the files of XLA."""

from dataclasses import replace
from typing import Any

from helpers.facts import PYTHON, environment, gpu, gpus, h100_node, package, packages, tensorflow
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import FactGroup, Packages, XlaFile
from kdoctor.matrix.load import shipped_matrix
from kdoctor.model import Action, Severity

INSTALL = f"{PYTHON} -m pip install"
NODE = h100_node(1)
NOTE = no_libraries().note
FOREIGN: dict[str, Any] = {"package": None, "package_version": None, "found_by": "LD_LIBRARY_PATH"}
ON_PATH = environment(LD_LIBRARY_PATH="/opt/old")


def installed(*wheels: tuple[str, str]) -> Packages:
    return packages(package("tensorflow", "2.21.0"), *(package(name, version) for name, version in wheels))


def cudnn(**changes: Any) -> FactGroup:
    return libraries(library("cudnn", **changes))


def release(version: str, **changes: Any) -> FactGroup:
    cuda = {"cuda_version": "12.3"} if version == "2.17.1" else {}
    return tensorflow(version=version, **{**cuda, **changes})


UNLISTED = {"version": "2.99.0", "cudnn_version": "9.3"}
OLD_CUDNN = cudnn(version="9.1.0", path="/opt/old/libcudnn.so.9", **FOREIGN)
UNREAD_CUDNN = [
    unknown(cudnn(version=None, **errors), said={"libcudnn.so.9": f"its version is unknown: {why}"})
    for errors, why in (
        ({"version_error": "it died"}, "it died"),
        ({"load_error": "no symbol"}, "no symbol"),
        ({}, "not read"),
    )
]


def wheel_of(wanted: str, name: str | None = None, **build: Any) -> Row:
    """The wheel for a release that the matrix does not list is of the same CUDA."""
    found = cudnn(version="8.9.7", package=name)
    return fails(
        tensorflow(**{**UNLISTED, **build}),
        found,
        commands=(f"{INSTALL} '{wanted}>=9.3,<10'",),
        expected="cuDNN 9.3 or a later 9.x",
    )


test_cudnn_for_build = table(
    "versions.cudnn-for-build",
    Severity.ERROR,
    # 2.18 and newer were built with 9.3, 2.16 and 2.17 with 8.9; cuda_dnn.cc: same major, equal or higher minor
    *(passes(cudnn(version=version)) for version in ("9.3.0", "9.24.0")),
    *(fails(cudnn(version=version)) for version in ("9.2.1", "8.9.7", "10.0.0")),
    *(fails(cudnn(version=version), release("2.17.1")) for version in ("8.8.0", "9.3.0")),
    # The build of an unlisted release states only the major version. The requirement of its package says more.
    passes(release("2.99.0")),
    fails(release("2.99.0"), cudnn(version="9.2.1"), "TensorFlow was built with cuDNN 9.3"),
    unknown(release("2.99.0"), installed(), "9.24.0 has the required major version; the minor version"),
    fails(cudnn(version="8.9.7"), release("2.99.0")),
    unknown(release("2.99.0", cudnn_version=None), installed(), "the cuDNN that TensorFlow was built with is unknown."),
    unknown(
        release("2.99.0", cudnn_version="new"), installed(), "the cuDNN that TensorFlow was built with is unknown."
    ),
    unknown(cudnn(version="new")),
    *UNREAD_CUDNN,
    passes(said={"libcudnn.so.9": "9.24.0 (nvidia-cudnn-cu12 9.24.0.43), TensorFlow built with 9.3"}),
    fails(cudnn(built_with="13.0"), "CUDA 13.0", "CUDA 12.5.1"),
    fails(
        OLD_CUDNN,
        ON_PATH,
        "Fix: Remove /opt/old from LD_LIBRARY_PATH.",
        commands=("unset LD_LIBRARY_PATH", f"{INSTALL} nvidia-cudnn-cu12==9.3.0.75"),
        rollback=("export LD_LIBRARY_PATH=/opt/old",),
        action=Action.CONFIGURE,
    ),
    fails(OLD_CUDNN, ON_PATH, installed(("nvidia-cudnn-cu12", "9.24.0.43")), commands=("unset LD_LIBRARY_PATH",)),
    wheel_of("nvidia-cudnn-cu12", "nvidia-cudnn-cu12"),
    wheel_of("nvidia-cudnn-cu13", "nvidia-cudnn-cu13", cuda_version="13.0"),
    wheel_of("nvidia-cudnn-cu13", cuda_version="13.0"),
    wheel_of("nvidia-cudnn-cu12", cuda_version=None),
    skips(libraries(missing("cudnn"))),
    skips(no_libraries(), reason=NOTE),
    given=NODE,
)


def of(capability: str | None, **changes: Any) -> FactGroup:
    return gpus(1, gpu(0, compute_capability=capability, **changes))


def with_driver(version: str | None, capability: str = "9.0") -> FactGroup:
    return gpus(1, gpu(0, compute_capability=capability), driver_version=version)


CUDNN_ROW = next(row for row in shipped_matrix().cudnn if row.cuda == 12 and row.oldest_driver)
THREE_DRIVERS = tuple(
    CUDNN_ROW.model_copy(update={"versions": ">=9", "capabilities": ">=5", "oldest_driver": oldest})
    for oldest in ("999.1", "525.60.13", "600.1")
)
"""Rows that fit the same cuDNN and GPU: a driver that one of them accepts is new enough."""
DRIVERS = replace(shipped_matrix(), cudnn=THREE_DRIVERS)
LAST = f"{INSTALL} nvidia-cudnn-cu12==9.10.2.21"

test_cudnn_for_gpus = table(
    "versions.cudnn-for-gpus",
    Severity.ERROR,
    # the wheels' fatbins: 9.10.2 has 5.0 to 9.0, 10.0, 12.0; from 9.11 on nothing before 7.5; 9.3 no Blackwell
    *(
        passes(cudnn(version=version), of(capability))
        for version, capability in (
            ("9.3.0", "7.0"),
            ("9.10.2", "6.0"),
            ("9.10.2", "12.0"),
            ("9.11.0", "7.5"),
            ("9.24.0", "9.0"),
        )
    ),
    fails(cudnn(version="9.3.0"), of("10.0"), commands=(f"{INSTALL} 'nvidia-cudnn-cu12>=9.11'",)),
    fails(cudnn(), of("7.0"), "Fix: Install a cuDNN", commands=(LAST,)),
    *(
        fails(
            cudnn(package=wheel),
            of("6.1", name=None),
            ": GPU has compute capability 6.1, but ",
            commands=(LAST,),
            look=(),
        )
        for wheel in ("nvidia-cudnn-cu12", "own-cudnn", None)
    ),
    fails(  # CUDA 13 has no cuDNN for GPUs before Turing
        cudnn(package="nvidia-cudnn-cu13", version="9.13.0"),
        of("5.2", name="Tesla P4"),
        release("2.99.0", cuda_version="13.0"),
        ": Tesla P4 has compute capability 5.2",
        commands=(),
        look=("kdoctor matrix",),
    ),
    unknown(cudnn(version="9.7.0")),  # not measured
    unknown(of(None)),
    unknown(of("nine")),
    unknown(gpus(0, state="no-library"), said={"GPUs": "the driver lists no GPUs (no-library)"}),
    unknown(with_driver("565.57.01", "10.0")),  # older than those of the support matrix
    unknown(with_driver("N/A", "10.0")),
    unknown(with_driver("1.0")),
    unknown(with_driver(None)),
    passes(with_driver("525.60.13"), DRIVERS),
    unknown(with_driver("525.60.12"), DRIVERS),
    *UNREAD_CUDNN,
    unknown(cudnn(version=None, soname=None), said={"libcudnn": "its version is unknown: not read"}),
    unknown(release("2.99.0", cuda_version=None), said={"libcudnn.so.9": "its CUDA release is unknown"}),
    unknown(libraries(libraries=()), of=["libcudnn"]),
    skips(libraries(missing("cudnn"))),
    skips(no_libraries(), reason=NOTE),
    given=NODE,
)

PTXAS = XlaFile(name="ptxas", status="missing")
NO_PTXAS = libraries(xla_files=(PTXAS,))
NVCC = f"{INSTALL} nvidia-cuda-nvcc-cu12==12.5.82"
MANY = ("/a", "/b", "/c", "/d", "/e")
CUDA_LIBRARIES = "versions.cuda-libraries"

test_xla_files = table(
    "versions.xla-files",
    Severity.WARNING,
    passes(of=["libdevice", "ptxas"]),
    *(
        fails(
            libraries(xla_files=(XlaFile(name=name, status="missing", searched=MANY),)),
            f"fail {name}: ",
            "/a, /b, /c and 2 more",
            commands=(NVCC,),
            rollback=(f"{PYTHON} -m pip uninstall -y nvidia-cuda-nvcc-cu12",),
        )
        for name in ("libdevice", "ptxas")
    ),
    fails(
        NO_PTXAS,
        release("2.99.0", cuda_version="13.1"),
        commands=(f"{INSTALL} nvidia-cuda-nvcc-cu13",),
        unsaid="/",
        explained_by=[""],
    ),
    # It is explained only if its wheel is missing, too.
    fails(libraries(missing("cudart"), xla_files=(PTXAS,)), installed(), explained_by=[CUDA_LIBRARIES]),
    fails(
        libraries(missing("cudart"), xla_files=(PTXAS,)),
        installed(("nvidia-cuda-nvcc-cu12", "12.5.82")),
        explained_by=[""],
    ),
    skips(no_libraries(), reason=NOTE),
    unknown(libraries(xla_files=()), reason="libdevice and ptxas: they were not looked for"),
    given=NODE,
)
