"""The checks of the CUDA libraries that TensorFlow opens."""

from dataclasses import replace
from typing import Any

from helpers.cases import cases
from helpers.facts import PYTHON, SITE, environment, h100_node, package, packages, tensorflow
from helpers.facts.libraries import SOLVER_FOLDER, libraries, library, missing, no_libraries, without_wheels
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import FactGroup, FrameworkLibrary, LibraryCopy, Packages
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.matrix.verdict import search_wheels
from kdoctor.model import Severity
from kdoctor_checks.versions._libraries import pinned, shown, with_libraries

INSTALL = f"{PYTHON} -m pip install"
NODE = h100_node(1)
NOTE = no_libraries().note
BARE = libraries(cuda_build=True, libraries=())
FOREIGN: dict[str, Any] = {"package": None, "package_version": None, "found_by": "LD_LIBRARY_PATH"}
ON_PATH = environment(LD_LIBRARY_PATH="/opt/old")
NEEDED = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn")


def outside(*names: str, folder: str = SOLVER_FOLDER) -> list[Any]:
    """Libraries in a folder that the loader does not search."""
    copies = {name: LibraryCopy(path=f"{folder}/lib{name}.so.11", found_by="not searched") for name in names}
    return [missing(name, other_copies=(copy,)) for name, copy in copies.items()]


def installed(*wheels: tuple[str, str], root: str = "tensorflow") -> Packages:
    return packages(package(root, "2.21.0"), *(package(name, version) for name, version in wheels))


def broken(**changes: Any) -> FactGroup:
    values = {"status": "unusable", "load_error": "cut", "path": "/opt/old/libcufft.so.11", **changes}
    return libraries(library("cufft", **values))


SYMBOL = "undefined symbol: cublasSetEnvironmentMode"
REINSTALL = f"{INSTALL} --force-reinstall 'tensorflow[and-cuda]==2.21.0'"
OLD_RELEASE = tensorflow(version="2.12.1", cuda_version="11.8", cudnn_version="8")

test_cuda_libraries = table(
    "versions.cuda-libraries",
    Severity.ERROR,
    fails(
        without_wheels(),
        *("libcudart.so.12", "libcublasLt.so.12", "libcusolver.so.11", "libcudnn.so.9"),
        "  none of the 7 ",
        of=["CUDA libraries"],
        unsaid="libnccl",  # not needed for a GPU
        commands=(f"{INSTALL} 'tensorflow[and-cuda]==2.21.0'", search_wheels(("cusolver",), PYTHON)),
        rollback=(f"{INSTALL} tensorflow==2.21.0",),
    ),
    *(
        fails(libraries(*map(missing, names)), f"  {brief}.")
        for names, brief in (
            (NEEDED[:1], "6 of the 7 that TensorFlow needs are installed"),
            ((*NEEDED[:4], "cusparse"), "2 of the 7 that TensorFlow needs are installed"),
            ((*NEEDED[:4], "cusparse", "cudnn"), "1 of the 7 that TensorFlow needs is installed"),
        )
    ),
    fails(libraries(missing("cudart", other_versions=("/cu13/libcudart.so.13",))), "/cu13/libcudart.so.13"),
    fails(
        tensorflow(version="2.20.0"), without_wheels(), commands=(f"{INSTALL} 'tensorflow[and-cuda]==2.20.0'",)
    ),  # it searches all folders
    fails(OLD_RELEASE, without_wheels(), "CUDA 11.8", "cuDNN 8.6", commands=(), look=("kdoctor matrix",)),
    fails(
        libraries(library("cusolver", load_error=SYMBOL)),
        installed(("nvidia-cublas-cu12", "12.5.3.2")),
        SYMBOL,
        of=["libcusolver.so.11"],
        rollback=(f"{INSTALL} tensorflow==2.21.0 nvidia-cublas-cu12==12.5.3.2",),
    ),
    fails(
        libraries(missing("cufft")),
        tensorflow(distribution="tf-nightly"),
        installed(("nvidia-cudnn-cu12", "9.24.0.43"), root="tf-nightly"),
        rollback=(f"{INSTALL} tf-nightly==2.21.0 nvidia-cudnn-cu12==9.24.0.43",),
    ),
    fails(
        broken(**FOREIGN),
        ON_PATH,
        "/opt/old/libcufft.so.11 does not load: cut.",
        ", and remove /opt/old from LD_LIBRARY_PATH.",
        "; unset LD_LIBRARY_PATH;",
    ),
    fails(broken(found_by="LD_LIBRARY_PATH"), ON_PATH, commands=(REINSTALL,)),
    skips(libraries(*outside(*NEEDED)), "versions.libraries-searched"),
    passes(libraries(library("cufft", soname=None)), "pass cufft: "),
    skips(no_libraries(), reason=NOTE),
    skips(BARE, "opens no CUDA library"),
    skips(replace(BARE, note="they were not opened"), reason="they were not opened"),
    given=NODE,
)

OLD_BLAS = [library(name, version="12.5.3", package_version="12.5.3.2") for name in ("cublas", "cublasLt")]
WITHOUT_WHEELS = libraries(
    library("cublas", version="12.5.3", package=None, package_version=None),
    *(
        library(name, package=None, package_version=None)
        for name in ("cudart", "cublasLt", "cufft", "cusolver", "cusparse", "nccl", "cupti")
    ),
)
test_cuda_libraries_match = table(
    "versions.cuda-libraries-match",
    Severity.WARNING,
    fails(
        libraries(*OLD_BLAS),
        "CUDA 12.5: libcublas.so.12 12.5.3 (nvidia-cublas-cu12 12.5.3.2)",
        "CUDA 12.9: ",
        "libcusolver.so.11 11.7.5",
        f"; {PYTHON} -m pip uninstall -y nvidia-cublas-cu12 ",
        f"; {INSTALL} --upgrade 'tensorflow[and-cuda]==2.21.0'",
        of=1,
    ),
    fails(WITHOUT_WHEELS, rollback=(f"{INSTALL} tensorflow==2.21.0",)),
    unknown(libraries(library("cufft", version="99.0")), "libcufft.so.11: ", "99.0"),
    unknown(libraries(library("cufft", soname=None, version=None)), "unknown cufft: ", "(unknown)"),
    skips(without_wheels()),
    skips(BARE, "no CUDA library"),
    skips(replace(BARE, note="they were not opened"), reason="they were not opened"),
    given=NODE,
)

NCCL = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"


def loaded(framework: str, *packages: str, path: str = NCCL, by: str | None = None) -> FrameworkLibrary:
    return FrameworkLibrary(framework=framework, soname="libnccl.so.2", path=path, packages=packages, installed_by=by)


def frameworks(*found: FrameworkLibrary) -> FactGroup:
    return libraries(frameworks=found)


TWO_NCCLS = installed(("nvidia-nccl-cu12", "2.27.7"), ("nvidia-nccl-cu13", "2.28.3"))
OVERWRITTEN = ("nvidia-nccl-cu13==2.28.3", "nvidia-nccl-cu12==2.27.7")

test_shared_libraries = table(
    "versions.shared-libraries",
    Severity.WARNING,
    fails(
        frameworks(loaded("TensorFlow", *OVERWRITTEN, by=OVERWRITTEN[0]), loaded("JAX", *OVERWRITTEN)),
        TWO_NCCLS,
        f"{', '.join(OVERWRITTEN)} install the same {NCCL}",
        "it is that of nvidia-nccl-cu13==2.28.3",
        of=["libnccl.so.2"],
        commands=(
            f"{PYTHON} -m pip uninstall -y nvidia-nccl-cu13 nvidia-nccl-cu12",
            f"{INSTALL} nvidia-nccl-cu12==2.27.7",  # TensorFlow's CUDA is 12
        ),
        rollback=(f"{INSTALL} nvidia-nccl-cu13==2.28.3 nvidia-nccl-cu12==2.27.7",),
    ),
    fails(
        frameworks(loaded("TensorFlow", "nvidia-nccl-cu12==2.27.7"), loaded("torch", path="/opt/torch/libnccl.so.2")),
        f"TensorFlow loads {NCCL} (nvidia-nccl-cu12==2.27.7); torch loads /opt/torch/libnccl.so.2 (of no NVIDIA wheel)",
        "imported first decides",
        look=("kdoctor matrix --framework jax",),
    ),
    fails(frameworks(loaded("JAX", *OVERWRITTEN)), TWO_NCCLS, "loaded by JAX.", unsaid="it is that of"),
    fails(frameworks(loaded("TensorFlow"), loaded("JAX", path="/x/libnccl.so.2")), "2 copies"),
    passes(frameworks(loaded("TensorFlow", "nvidia-nccl-cu12==2.27.7"), loaded("JAX", "nvidia-nccl-cu12==2.27.7"))),
    passes(libraries(), "TensorFlow: one file for each of 9 libraries"),
    skips(frameworks(), "no framework loads"),
    skips(no_libraries(), reason=NOTE),
    given=NODE,
)

TF_2161 = tensorflow(version="2.16.1", cuda_version="12.3", cudnn_version="8")
SOLVER = libraries(*outside("cusolver"))
ANOTHER_DEFECT = b"""
- id: another_defect
  when: {tensorflow: "==2.19.0"}
  effect: crash
  symptom: it crashes
  ended_by: {tensorflow: ">=2.19.1"}
  fix: tensorflow 2.19.1
  source: seen here
"""
ADD = f'export LD_LIBRARY_PATH={SOLVER_FOLDER}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'

test_libraries_searched = table(
    "versions.libraries-searched",
    Severity.ERROR,
    passes(libraries(missing("cusolver"), path_kind=None), said={"search path": "the loader covers 6 of 7 libraries"}),
    fails(
        SOLVER,
        environment(),
        "libcusolver.so.11",
        SOLVER_FOLDER,
        "  does not search the folder of libcusolver.so.11.",
        commands=(ADD,),
        rollback=("unset LD_LIBRARY_PATH",),
    ),
    fails(
        SOLVER,
        TF_2161,
        commands=(f"{INSTALL} 'tensorflow[and-cuda]>=2.16.2,==2.16.*'",),
        rollback=(f"{INSTALL} tensorflow==2.21.0",),
    ),
    fails(
        SOLVER,
        replace(TF_2161, distribution="tf-nightly"),
        installed(root="tf-nightly"),
        rollback=(f"{INSTALL} tf-nightly==2.21.0",),
    ),
    # A release is replaced only for a defect that hides the GPUs.
    fails(SOLVER, tensorflow(version="2.19.0"), environment(), loads(shipped_text() + ANOTHER_DEFECT), commands=(ADD,)),
    *(
        passes(libraries(*outside("cusolver", folder=folder)))
        for folder in ("/usr/local/cuda/lib64", f"{SITE}/torch/lib")  # of another program
    ),
    skips(without_wheels()),
    skips(no_libraries(), reason=NOTE),
    skips(BARE, "opens no CUDA library"),
    given=NODE,
)

WHEEL = LibraryCopy(path=f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", found_by="RUNPATH")
BLAS = LibraryCopy(path=f"{SITE}/nvidia/cublas/lib/libcublas.so.12", found_by="RUNPATH")
CONDA = {"path": "/opt/conda/lib/libcudnn.so.9", "other_copies": (WHEEL,), **FOREIGN}


def conda(**changes: Any) -> FactGroup:
    return libraries(library("cudnn", **{**CONDA, **changes}))


test_libraries_shadowed = table(
    "versions.libraries-shadowed",
    Severity.WARNING,
    fails(
        conda(),
        "fail libcudnn.so.9: ",
        "/opt/conda/lib/libcudnn.so.9 (LD_LIBRARY_PATH)",
        WHEEL.path,
        commands=("export LD_LIBRARY_PATH='/a b'",),
        rollback=("export LD_LIBRARY_PATH='/opt/conda/lib:/a b'",),
    ),
    fails(
        libraries(
            library("cudnn", **CONDA),
            library("cublas", path="/opt/cuda/lib64/libcublas.so.12", other_copies=(BLAS,), **FOREIGN),
        ),
        environment(LD_LIBRARY_PATH="/opt/conda/lib:/keep:/opt/cuda/lib64"),
        of=2,
        commands=("export LD_LIBRARY_PATH=/keep",),
    ),
    passes(conda(found_by="ld.so.cache")),
    passes(conda(other_copies=(replace(WHEEL, found_by="not searched"),))),
    skips(without_wheels()),
    given=(*NODE, environment(LD_LIBRARY_PATH="/opt/conda/lib:/a b")),
)


def test_requirement_with_libraries_has_the_extra_where_the_release_has_it() -> None:
    with_extra = next(row for row in shipped_matrix().releases if row.and_cuda is not None)
    without = next(row for row in shipped_matrix().releases if row.and_cuda is None)
    build = tensorflow(distribution="tf-nightly", version="2.21.0")
    assert with_libraries(build, with_extra) == with_libraries(build, None) == "tf-nightly[and-cuda]==2.21.0"
    assert with_libraries(build, without) == "tf-nightly==2.21.0"
    assert with_libraries(tensorflow(distribution=None, version=None), None) == "tensorflow[and-cuda]"
    assert pinned(without, "nvidia-cudnn-cu12") is None is pinned(None, "nvidia-cudnn-cu12")


@cases(
    ({}, "libcudnn.so.9 9.24.0 (nvidia-cudnn-cu12 9.24.0.43)"),
    ({"package": None}, "libcudnn.so.9 9.24.0"),
    ({"package": None, "version": None, "soname": None}, "cudnn (version unknown)"),
)
def test_library_is_shown_with_its_package(change: dict[str, Any], text: str) -> None:
    assert shown(library("cudnn", **change)) == text
