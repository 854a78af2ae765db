"""What follows from the rows of a version matrix."""

from dataclasses import replace

from helpers.cases import cases
from helpers.matrices import SOURCE, release, small_matrix
from kdoctor.matrix.cuda import CudaMajor, CudaRelease, PtxVersion
from kdoctor.matrix.kernels import Kernels
from kdoctor.matrix.model import GpuKind, Libraries, Platform


@cases(
    ("numpy", None, "numpy>=1.26; python_version < '3.12'"),
    ("numpy", "3.11", "numpy>=1.26; python_version < '3.12'"),
    ("numpy", "3.12", "numpy>=2; python_version >= '3.12'"),
    ("scipy", "3.11", None),
    ("scipy", "3.9", "scipy<2; python_version < '3.10'"),
    ("typing-extensions", None, "Typing_Extensions>=4"),
    ("nvidia-cudnn-cu12", "3.11", "nvidia-cudnn-cu12>=9.3"),
    ("absl-py", None, None),
)
def test_requirement_of_a_release(name: str, python: str | None, found: str | None) -> None:
    lines = (
        "numpy>=1.26; python_version < '3.12'",
        "numpy>=2; python_version >= '3.12'",
        "scipy<2; python_version < '3.10'",
        "Typing_Extensions>=4",
    )
    requirement = release("2.0.0", requires=lines).requirement(name, python)
    assert (None if requirement is None else str(requirement).replace('"', "'")) == found


MAJORS = tuple(
    CudaMajor(major=major, oldest_driver=driver, oldest_windows_driver=windows, source=SOURCE)
    for major, driver, windows in ((11, "450.80.02", "452.39"), (12, "525.60.13", "527.41"))
)
RELEASES = tuple(
    CudaRelease(release=name, driver=driver, source=SOURCE)
    for name, driver in (
        ("12.4.0", "550.54.14"),
        ("12.5.1", "555.42.06"),
        ("12.5.0", "555.42.02"),
        ("12.6.0", None),
        ("12.6.1", "560.35.03"),
        ("12.8.0", None),
    )
)
ISAS = (PtxVersion(isa="8.4", cuda="12.4", source=SOURCE), PtxVersion(isa="8.0", cuda="12.0", source=SOURCE))
MATRIX = small_matrix(release("2.0.0"), cuda_majors=MAJORS, cuda_releases=RELEASES, ptx_versions=ISAS)


@cases(
    (None, "12.5.1", "555.42.02"),  # the first driver of the minor release
    (None, "12.5", "555.42.02"),
    (None, "12.6.0", "560.35.03"),
    (None, "12.8", None),
    (None, "12.7", None),
    (None, "12.0.1", "525.60.13"),  # every driver of CUDA 12
    (None, "11.0", "450.80.02"),
    (None, "13.0", None),
    ("8.4", "12.5.1", "550.54.14"),
    ("8.0", "12.5.1", "525.60.13"),
    ("8.9", "12.5.1", None),
)
def test_driver_that_compiles_ptx(isa: str | None, cuda: str, driver: str | None) -> None:
    assert MATRIX.ptx_driver(Kernels(cubins=(), ptx=("80",), ptx_isa=isa), cuda) == driver


def test_drivers_of_windows() -> None:
    """NVIDIA's table has a column for them; where it has none, the branch decides."""
    gpus = tuple(
        GpuKind(capability=capability, architecture="A", models=(capability,), oldest_driver=driver, source=SOURCE)
        for capability, driver in (("8.0", "450.80.02"), ("9.0", "555.42.02"), ("10.0", "570.26"), ("11.0", None))
    )
    rows = tuple(
        row.model_copy(update={"windows_driver": "555.85" if row.release == "12.5.0" else None}) for row in RELEASES
    )
    platforms = (Platform(platform="wsl2", wheels=">=2", windows_driver=True, source=SOURCE),)
    linux = replace(MATRIX, gpus=gpus, cuda_releases=rows, platforms=platforms)
    windows = linux.at("wsl2")
    assert linux.at("linux-x86_64") is linux.at(None) is linux
    assert [windows.oldest_driver(cuda) for cuda in ("11.8", "12.5.1", "13.0")] == ["452.39", "527.41", None]
    assert [row.driver for row in windows.cuda_releases] == ["550", "555", "555.85", None, "560", None]
    assert [row.oldest_driver for row in windows.gpus] == ["452.39", "555.85", "570", None]
    assert windows.at("wsl2").gpus == windows.gpus


@cases(
    ({"cudnn": "8.9"}, 8),
    ({"cudnn": None}, 9),  # the lowest that it requires
    ({"cudnn": None, "and_cuda": ("nvidia-cudnn-cu12<10,>=8.6",)}, 8),
    ({"cudnn": None, "and_cuda": None}, None),
    ({"cudnn": None, "and_cuda": ("nvidia-cudnn-cu12",)}, None),
)
def test_major_release_of_cudnn(changes: dict[str, object], major: int | None) -> None:
    assert MATRIX.cudnn_major(release("2.0.0", **changes)) == major


def test_libraries_of_a_release_are_those_of_all_rows_that_fit() -> None:
    rows = (
        Libraries(cuda=12, sonames={"cudart": "libcudart.so.12"}, source=SOURCE),
        Libraries(cuda=11, sonames={"cudart": "libcudart.so.11.0"}, source=SOURCE),
        Libraries(cudnn=9, sonames={"cudnn": "libcudnn.so.9"}, source=SOURCE),
        Libraries(cudnn=8, sonames={"cudnn": "libcudnn.so.8"}, source=SOURCE),
        Libraries(cuda=12, nccl="dynamic", sonames={"nccl": "libnccl.so.2"}, source=SOURCE),
    )
    matrix = small_matrix(libraries=rows)
    static = release("2.0.0")
    assert matrix.sonames(static) == {"cudart": "libcudart.so.12", "cudnn": "libcudnn.so.9"}
    dynamic = static.model_copy(update={"nccl": static.nccl.model_copy(update={"linkage": "dynamic"})})
    assert matrix.sonames(dynamic).keys() == {"cudart", "cudnn", "nccl"}
    assert matrix.sonames(release("2.0.0", cuda="11.8", cudnn="8.6")) == {
        "cudart": "libcudart.so.11.0",
        "cudnn": "libcudnn.so.8",
    }


@cases(
    ({"data_center": ("A",), "arm_models": ("C",)}, False),
    ({"models": ("B",), "arm_models": ("C",)}, False),
    ({"arm_models": ("C",)}, True),
)
def test_models_of_a_capability(lists: dict[str, tuple[str, ...]], *, arm_only: bool) -> None:
    kind = GpuKind.model_validate({"capability": "12.1", "architecture": "X", "source": SOURCE, **lists})
    assert (kind.names, kind.arm_only, kind.number) == (tuple(sum(lists.values(), ())), arm_only, 121)
