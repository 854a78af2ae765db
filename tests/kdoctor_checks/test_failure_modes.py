"""The checks that name a known failure find it in facts that describe it, and pass on a similar machine without it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import pytest
import yaml

from helpers.cases import cases
from helpers.checks import ALL
from helpers.facts import (
    DRIVER,
    MIB,
    SITE,
    cpu_host,
    environment,
    gpu,
    gpus,
    h100_node,
    host,
    keras,
    kernel,
    package,
    packages,
    smoke_case,
    smoke_run,
    tensorflow,
)
from helpers.facts.libraries import SOLVER_FOLDER, libraries, library, missing, without_wheels
from kdoctor.defects import load_defects
from kdoctor.engine.report import Result
from kdoctor.facts import (
    FactGroup,
    FrameworkLibrary,
    KernelLog,
    KernelLogEvent,
    LibraryCopy,
    Packages,
    ResourceLimit,
    Weights,
    XlaFile,
)  # fmt: skip
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_lint.registry import RULES

CHECKS = ALL
Facts = Sequence[FactGroup]


def modes() -> list[dict[str, Any]]:
    text = resources.files("kdoctor_checklists.failures").joinpath("failure-modes.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["failure_modes"]
    return found


MODES = {mode["id"]: mode for mode in modes()}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One failure: facts with which the check must fail, and similar facts with which it must pass."""

    mode: str
    check: str
    bad: Facts
    good: Facts = ()


def copy(path: str, found_by: str = "not searched") -> LibraryCopy:
    return LibraryCopy(path=path, found_by=found_by)  # type: ignore[arg-type]


def cudnn(version: str, **changes: Any) -> FactGroup:
    return libraries(library("cudnn", version=version, package_version=f"{version}.1", **changes))


def one_of(name: str, capability: str) -> FactGroup:
    """Eight GPUs, one of the given model."""
    odd = gpu(3, name=name, compute_capability=capability)
    return gpus(8, *(odd if index == 3 else gpu(index) for index in range(8)))


def with_numpy(version: str, release: str, requirement: str) -> tuple[Packages, FactGroup]:
    found = packages(package("tensorflow", release, requirement), package("numpy", version))
    return found, tensorflow(version=release, cuda_version="11.2")


def log(*events: KernelLogEvent) -> KernelLog:
    return KernelLog(source="/dev/kmsg", lines=900, complete=True, events=events)


def row(mode: str, check: str, *bad: FactGroup, good: Facts = ()) -> Row:
    return Row(mode=mode, check=check, bad=bad, good=good)


LD_PATH = "/usr/local/cuda/lib64"
WEIGHTS = Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=True)
NO_RUNPATH = libraries(
    *(missing(name, other_copies=(copy(f"{SITE}/nvidia/{folder}/lib/{library(name).soname}"),)) for name, folder in (
        ("cublas", "cublas"), ("cublasLt", "cublas"), ("cufft", "cufft"), ("cusolver", "cusolver"),
        ("cusparse", "cusparse"), ("cudnn", "cudnn"),
    )),
    runpath=("$ORIGIN/../nvidia/cuda_runtime/lib",),
)  # fmt: skip
"""TensorFlow 2.16.1, which searches only cuda_runtime."""
SYSTEM_CUDNN = library(
    "cudnn", version="9.1.0", path=f"{LD_PATH}/libcudnn.so.9", found_by="LD_LIBRARY_PATH", package=None,
    package_version=None, other_copies=(copy(f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9", "RUNPATH"),),
)  # fmt: skip
COMPAT = library("cuda", path="/usr/local/cuda/compat/libcuda.so.1", found_by="LD_LIBRARY_PATH", version="580.105.08")

ROWS = (
    row("cudart_not_found", "versions.cuda-libraries", without_wheels()),
    row(
        "libcuda_missing",
        "driver.libcuda-found",
        libraries(missing("cuda")),
        host(container="docker"),
        good=[host(container="docker")],
    ),
    # LD_LIBRARY_PATH has all folders
    row(
        "tf2161_runpath",
        "versions.libraries-searched",
        tensorflow(version="2.16.1", cuda_version="12.3", cudnn_version="8"),
        NO_RUNPATH,
        environment(),
        good=[tensorflow(version="2.16.1", cuda_version="12.3", cudnn_version="8")],
    ),
    row("cudnn_older_than_build", "versions.cudnn-for-build", cudnn("9.1.0"), good=[cudnn("9.3.0")]),
    row("cudnn_older_than_build", "versions.libraries-shadowed", libraries(SYSTEM_CUDNN)),
    row(
        "cudnn_too_old_tf221",
        "versions.known-hazards",
        cudnn("9.5.1"),
        good=[cudnn("9.5.1"), tensorflow(version="2.19.1")],
    ),
    row(
        "cudnn_too_new_pre_turing",
        "versions.cudnn-for-gpus",
        one_of("Tesla V100-SXM2-32GB", "7.0"),
        good=[one_of("Tesla V100-SXM2-32GB", "7.0"), cudnn("9.10.2")],
    ),
    row(
        "mixed_cuda_components",
        "versions.cuda-libraries",
        libraries(library("cusolver", load_error="libcusolver.so.11: undefined symbol: cublasSetEnvironmentMode")),
    ),
    row(
        "mixed_cuda_components",
        "versions.cuda-libraries-match",
        libraries(library("cublas", version="12.5.3", package_version="12.5.3.2")),
    ),
    row(
        "mixed_cuda_components",
        "versions.shared-libraries",
        libraries(frameworks=(FrameworkLibrary(framework="JAX", soname="s", path="/s", packages=("a==1", "b==1")),)),
    ),
    row(
        "kernel_dso_mismatch",
        "driver.library-matches-module",
        kernel(version="570.86.15"),
        good=[kernel(version=DRIVER)],
    ),
    row(
        "kernel_dso_mismatch",
        "driver.libcuda-found",
        libraries(library("cuda", version="570.86.15", found_by="LD_LIBRARY_PATH", path="/opt/old/libcuda.so.1")),
    ),
    row(
        "compat_804",
        "driver.forward-compatibility",
        libraries(COMPAT, driver_is_compat=True),
        gpus(1, gpu(0, name="NVIDIA GeForce RTX 4090")),
        good=[libraries(COMPAT, driver_is_compat=True)],
    ),
    # an H100 with 2.15, whose newest machine code is for 8.0
    row(
        "ptx_newer_than_driver",
        "versions.driver-for-ptx",
        tensorflow(version="2.15.1", cuda_version="12.2", compute_capabilities=("sm_70", "sm_75", "compute_80")),
        gpus(2, driver_version="525.147.05", cuda_driver_version="12.0"),
        good=[
            tensorflow(version="2.15.1", cuda_version="12.2", compute_capabilities=("sm_70", "sm_75", "compute_80")),
            gpus(2, driver_version="535.104.05", cuda_driver_version="12.2"),
        ],
    ),
    # 2.21, by PTX
    row(
        "blackwell_invalid_ptx",
        "versions.gpu-code",
        tensorflow(version="2.20.0"),
        one_of("NVIDIA B200", "10.0"),
        good=[one_of("NVIDIA B200", "10.0")],
    ),
    row(
        "blackwell_xla_ptx85",
        "versions.known-hazards",
        one_of("NVIDIA GeForce RTX 5090", "12.0"),
        good=[one_of("NVIDIA H100", "9.0")],
    ),
    row(
        "libdevice",
        "versions.xla-files",
        libraries(xla_files=(XlaFile(name="libdevice", status="missing", searched=("./libdevice.10.bc",)),)),
    ),
    row(
        "silent_one_cpu_replica",
        "versions.cuda-build",
        tensorflow(distribution="tensorflow-cpu", cuda_build=False, cuda_version=None),
    ),
    row(
        "silent_one_cpu_replica",
        "gpu.replicas-match",
        smoke_run("smoke.baseline", 8, smoke_case(replicas=1, kind="CPU"), gpus_seen=0),
    ),
    row(
        "requested_devices_not_visible",
        "environment.visible-devices",
        environment(CUDA_VISIBLE_DEVICES="0,9"),
        good=[environment(CUDA_VISIBLE_DEVICES="0,1,2,3,4,5,6,7", CUDA_DEVICE_ORDER="PCI_BUS_ID")],
    ),
    row("slow_gpu_dropped", "gpu.same-model", one_of("NVIDIA T400 4GB", "7.5")),
    row("slow_gpu_dropped", "gpu.replicas-match", smoke_run("smoke.baseline", 8, smoke_case(replicas=7), gpus_seen=7)),
    row("mig_single_device", "gpu.mig-mode", gpus(1, gpu(0, mig_mode=True))),
    row("nccl_system_error", "host.shared-memory", host(shm_total_bytes=64 * MIB, shm_free_bytes=64 * MIB)),
    row(
        "keras3_grads_not_reduced", "versions.keras-compatible", keras(version="3.4.1"), good=[keras(version="3.10.0")]
    ),
    row("keras3_lr_times_replicas", "versions.keras-compatible", keras(version="3.6.0")),
    row("keras3_metrics_wrong_or_nan", "versions.keras-compatible", keras(version="3.9.2")),
    *(
        row(
            mode,
            "smoke.baseline",
            smoke_run("smoke.baseline", 8, smoke_case(weight_deviation=deviation, losses=losses)),
        )
        for mode, deviation, losses in (
            ("keras3_grads_not_reduced", 0.12, (1.0, 0.5)),
            ("keras3_lr_times_replicas", 0.18, (1.0, 0.5)),
            ("keras3_metrics_wrong_or_nan", 0.0, (402.0, 0.2)),
        )
    ),
    *(
        row(
            mode,
            "smoke.baseline",
            smoke_run(
                "smoke.baseline",
                8,
                smoke_case(weights=replace(WEIGHTS, nonfinite=("dense/kernel",)), losses=(1.0, float("nan"))),
            ),
        )
        for mode in ("iommu_acs", "geforce_p2p_nan")
    ),
    # the metadata of 2.11 accepts any newer NumPy
    row(
        "numpy2_abi",
        "versions.known-bad",
        *with_numpy("2.0.2", "2.11.1", "numpy>=1.20"),
        good=with_numpy("1.26.4", "2.11.1", "numpy>=1.20"),
    ),
    row("numpy2_abi", "versions.package-conflicts", *with_numpy("2.0.2", "2.17.1", "numpy<2.0.0,>=1.23.5")),
    row(
        "hmm_kaslr",
        "driver.memory-regions",
        log(KernelLogEvent(kind="hmm-failed", text="nvidia-uvm: request_free_mem_region() err -34")),
        good=[log()],
    ),
)

NOT_BY_ROWS = {
    "keras3_bn_empty_replica": "smoke.starved-replica has tests with measured runs",
    "model_outside_scope": "smoke.model-outside-scope has tests with measured runs",
    "optimizer_outside_scope": "smoke.outside-scope has tests with measured runs",
    "jit_compile_true_multi": "smoke.misuse has tests with measured runs",
    "keras3_output_losses": "job.evaluate has tests",
    "keras2_nadam_custom_loop": "smoke.custom-loop-optimizers has tests with measured runs",
    "absent_worker_hang": "smoke.lost-worker has tests with measured runs",
    "hierarchical_copy_odd_devices": "smoke.hierarchical-copy has tests with measured runs",
    "jax_indivisible_batch": "smoke.data-parallel-batches has tests with measured runs",
    "jax_layout_ignored": "smoke.layout-map has tests with measured runs",
    "keras3_central_storage_loss": "smoke.central-storage has tests with measured runs",
    "keras3_multi_worker_fit": "smoke.multi-worker-fit has tests with measured runs",
    "keras3_parameter_server_fit": "smoke.parameter-server-fit has tests with measured runs",
    "missing_device_hang": "smoke.no-such-device has tests with measured runs",
    "torch_fit_trains_alone": "smoke.torch-fit has tests with measured runs",
    "virtual_gpu_no_nccl": "cannot be found before the job",
}
"""Failures that only a training shows. The tests of its check have the recorded runs."""


def judged(row: Row, facts: Facts) -> Result:
    return compute_check(CHECKS[row.check], *h100_node(8), log(), *facts)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.mode}-{row.check}")
def test_failure_is_found_and_a_similar_machine_passes(row: Row) -> None:
    assert row.mode in CHECKS[row.check].failure_modes
    result = judged(row, row.bad)
    assert result.status is Status.FAIL, result.reason
    for item in result.findings:
        assert item.finding.observed
        assert item.finding.expected
        assert item.finding.remedy.summary
        assert item.finding.rollback.why
    passed = judged(row, row.good)
    assert passed.status is Status.PASS, (passed.reason, passed.findings)


def test_every_failure_is_tested_here_or_elsewhere() -> None:
    assert {row.mode for row in ROWS} | set(NOT_BY_ROWS) == set(MODES)
    assert not {row.mode for row in ROWS} & set(NOT_BY_ROWS)


def test_every_failure_is_caught_or_documented_as_not_detectable() -> None:
    caught = {mode for check in CHECKS.values() for mode in check.failure_modes}
    caught -= {defect.failure for defect in load_defects().values()}
    assert caught <= set(MODES)
    for name, mode in MODES.items():
        assert (name in caught) != ("not_before_the_job" in mode), name


def test_all_failures_are_described_with_a_source() -> None:
    assert len(modes()) == len(MODES)
    for mode in modes():
        assert mode["symptom"]
        assert mode["cause"]
        assert mode["source"]
        assert mode["kind"] in {"registration", "crash", "hang", "silent", "slow"}


def test_named_lint_rules_exist() -> None:
    assert {rule for mode in modes() for rule in mode.get("lint", ())} <= set(RULES)


@cases((h100_node(8), Assumptions()), (cpu_host(), Assumptions(gpus=GpuAssumption(count=0))), ids=["and-cuda", "cpu"])
def test_healthy_environment_has_no_findings_about_versions(facts: Facts, assumed: Assumptions) -> None:
    for check in CHECKS.values():
        if check.family == "versions" and check.id != "versions.keras-features":  # every Keras 3 has some defects
            result = compute_check(check, *facts, assumptions=assumed)
            assert result.status in {Status.PASS, Status.SKIP}, (check.id, result.reason)


def test_healthy_environment_of_2_21_has_the_cusolver_folder_on_its_path() -> None:
    (path,) = [group for group in h100_node(8) if isinstance(group, type(environment()))]
    assert path.get("LD_LIBRARY_PATH") == SOLVER_FOLDER


def test_locked_memory_limit_of_containers_fails() -> None:
    small = host(limits=(ResourceLimit(name="memlock", soft=64 * 1024, hard=64 * 1024),))
    assert compute_check(CHECKS["host.locked-memory"], *h100_node(8), small).status is Status.FAIL
