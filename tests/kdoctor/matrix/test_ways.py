"""Ways to run a release that an old driver keeps from running, on a matrix that can be worked out by hand."""

from typing import Any

from helpers.cases import cases
from helpers.matrices import A100, H100, PTX_8_5, SOURCE, release, small_matrix
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.cuda import ForwardCompatibility
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.model import GpuKind, VersionMatrix
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.ways import WayOut, way_out

NEW = release("2.19.0")
DESKTOP = NamedGpu(name="RTX", capability="9.0")
OLD_DRIVER = "535.161.08"


def way(
    *gpus: NamedGpu, driver: str | None = OLD_DRIVER, matrix: VersionMatrix | None = None, **machine: Any
) -> WayOut | None:
    given = Machine(**{"driver": driver, "gpus": gpus, "python": "3.11", **machine})
    found = matrix or small_matrix(NEW)
    return way_out(found, given, compatible(found, given))


def packaged(*rows: tuple[str, tuple[int, ...]], item: Any = NEW, **changes: Any) -> VersionMatrix:
    """A matrix with these forward-compatibility packages: CUDA and the branches on which they work."""
    found = tuple(ForwardCompatibility(cuda=cuda, branches=branches, source=SOURCE) for cuda, branches in rows)
    return small_matrix(item, forward_compatibility=found, **changes)


def test_h100_needs_the_driver_that_compiles_the_ptx_or_the_package() -> None:
    found = way(H100)
    assert found is not None
    assert (found.driver, found.package) == ("555.42.02", "cuda-compat-12-5")
    assert found.why == "the build has only PTX of CUDA 12.5.1 for H100 (9.0)"
    assert found.commands == (
        "sudo apt-get install cuda-compat-12-5",
        'export LD_LIBRARY_PATH="/usr/local/cuda-12.5/compat${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
    )


def test_driver_that_is_older_than_the_cuda_needs_no_reason() -> None:
    found = way(A100, driver="470.256.02")
    assert found is not None
    assert (found.driver, found.package, found.commands, found.why) == ("525.60.13", None, (), None)


def test_reason_is_the_one_that_needs_this_driver() -> None:
    """Compiled kernels need 555.42.02 for their PTX, and generated ones 525.60.13."""
    rows = small_matrix(NEW).ptx_versions
    older = rows[0].model_copy(update={"isa": "8.0", "cuda": "12.0"})
    item = release("2.19.0", kernel_gen={"cubins": [80], "ptx": ["80"], "ptx_isa": "8.0"})
    found = way(H100, driver="470.256.02", matrix=small_matrix(item, ptx_versions=(older, *rows)))
    assert found is not None
    assert found.why == "the build has only PTX of CUDA 12.5.1 for H100 (9.0)"


@cases(
    ((H100,), {"driver": "555.42.02"}),  # it runs
    ((H100,), {"driver": None}),
    ((), {}),
    ((H100,), {"python": "3.9"}),  # a newer driver does not suffice
    ((H100,), {"python": None}),  # nor where the Python is not known
)
def test_no_way_out_where_the_driver_alone_does_not_decide(gpus: tuple[NamedGpu, ...], changes: dict[str, Any]) -> None:
    assert way(*gpus, **changes) is None


def test_newest_final_release_counts() -> None:
    early = release("2.20.0rc0")
    found = way(H100, matrix=small_matrix(release("2.18.0"), NEW, early))
    assert found is not None
    assert found.verdict.release is NEW
    both = small_matrix(release("2.18.0"), release("2.19.0", cubins=(80, 90)))
    assert way(H100, matrix=both) is None  # the newest one runs
    later = release("2.20.0", python=">=3.14")
    older = way(H100, matrix=small_matrix(NEW, later))
    assert older is not None
    assert older.verdict.release is NEW


def test_older_plugin_of_jax_is_preferred() -> None:
    plugins = [release("0.7.0", distribution="jax", extra=extra) for extra in ("cuda12", "cuda13")]
    found = way(H100, matrix=small_matrix(jax=tuple(plugins)).of("jax"))
    assert found is not None
    assert found.verdict.release.extra == "cuda12"


@cases((None, OLD_DRIVER, True), (535, OLD_DRIVER, True), (534, OLD_DRIVER, False), (470, "470.256.02", True))
def test_gpu_whose_support_has_ended_has_no_newer_driver(last: int | None, driver: str, *, has_way: bool) -> None:
    kinds = (
        GpuKind(capability="8.0", architecture="Ampere", data_center=("A100",), source=SOURCE),
        GpuKind(capability="9.0", architecture="Hopper", data_center=("H100",), last_branch=last, source=SOURCE),
    )
    assert (way(A100, H100, driver=driver, matrix=small_matrix(NEW, gpus=kinds)) is not None) == has_way


@cases(
    ((H100,), {}, "cuda-compat-12-5"),
    ((H100, A100), {}, "cuda-compat-12-5"),
    ((DESKTOP,), {}, None),
    ((H100, DESKTOP), {}, None),
    ((H100,), {"platform": "linux-x86_64"}, "cuda-compat-12-5"),
)
def test_package_is_for_data_center_gpus(
    gpus: tuple[NamedGpu, ...], machine: dict[str, Any], package: str | None
) -> None:
    found = way(*gpus, **machine)
    assert found is not None
    assert found.package == package


def test_package_does_not_make_the_driver_support_a_newer_gpu() -> None:
    newer = GpuKind(capability="9.0", architecture="H", data_center=("H100",), oldest_driver="550.1", source=SOURCE)
    ampere = GpuKind(capability="8.0", architecture="A", data_center=("A100",), source=SOURCE)
    found = way(A100, H100, matrix=small_matrix(NEW, gpus=(ampere, newer)))
    assert found is not None
    assert (found.driver, found.package) == ("555.42.02", None)


@cases(
    ([("12.4", (535,)), ("12.5", (535,)), ("12.6", (535,))], "cuda-compat-12-5"),  # the oldest that suffices
    ([("12.4", (535,))], None),  # it does not compile the PTX of CUDA 12.5
    ([("12.6", (550,)), ("12.8", (535, 550))], "cuda-compat-12-8"),  # 12.6 works on another branch
)
def test_package_compiles_the_ptx_and_fits_the_branch(rows: list[tuple[str, tuple[int, ...]]], package: str) -> None:
    found = way(H100, matrix=packaged(*rows))
    assert found is not None
    assert found.package == package


def test_machine_code_needs_only_the_major_release() -> None:
    """The A100 has machine code, so that any package for CUDA 12 suffices."""
    found = way(A100, driver="470.256.02", matrix=packaged(("11.8", (470,)), ("12.0", (470,)), ("12.5", (470,))))
    assert found is not None
    assert found.package == "cuda-compat-12-0"
    generated = release("2.19.0", kernel_gen={**PTX_8_5.model_dump(), "cubins": [80]})
    both = way(A100, driver="470.256.02", matrix=packaged(("12.0", (470,)), ("12.5", (470,)), item=generated))
    assert both is not None
    assert both.package == "cuda-compat-12-0"
    hopper = way(A100, H100, driver="525.60.13", matrix=packaged(("12.0", (525,)), ("12.5", (525,)), item=generated))
    assert hopper is not None
    assert hopper.package == "cuda-compat-12-5"
