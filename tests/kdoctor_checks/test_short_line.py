"""The values that checks give to the line of their family in the short report."""

from typing import Any

from helpers.cases import cases
from helpers.facts import (
    GIB,
    MIB,
    SITE,
    environment,
    gpus,
    host,
    keras,
    packages,
    pci,
    smoke_case,
    smoke_run,
    target,
    tensorflow,
)
from helpers.facts.libraries import libraries, library, missing, without_wheels
from kdoctor.check import Check
from kdoctor.facts import FactGroup, LibraryCopy, ResourceLimit, SmokeRun, XlaFile
from kdoctor.testing import compute_check
from kdoctor_checks import checks

OUTSIDE = LibraryCopy(path=f"{SITE}/nvidia/cusolver/lib/libcusolver.so.11", found_by="not searched")
CHECKS = {check.id: check for check in checks()}


def values(check_id: str, *facts: FactGroup) -> list[str]:
    check: Check = CHECKS[check_id]
    result = compute_check(check, *facts)
    return [item.brief for item in result.evidence if item.brief]


def software(**build: Any) -> tuple[FactGroup, ...]:
    return tensorflow(**build), packages(), target(), keras(), pci()


@cases(
    ("versions.tensorflow-installed", software(), ["TensorFlow 2.21.0"]),
    ("versions.tensorflow-installed", software(distribution="tensorflow-cpu"), ["tensorflow-cpu 2.21.0"]),
    ("versions.keras-compatible", software(), ["Keras 3.15.1"]),
    ("versions.cuda-build", software(), ["CUDA 12.5.1"]),
    ("versions.cuda-build", software(cuda_version=None), []),
    ("host.cpus", (host(), gpus(8)), ["224 CPUs"]),
    ("host.memory", (host(),), ["2.0 TiB memory"]),
    ("host.memory", (host(memory_total_bytes=24 * GIB, memory_available_bytes=20 * GIB),), ["24 GiB memory"]),
    ("host.shared-memory", (host(shm_total_bytes=252 * GIB), pci()), ["/dev/shm 252 GiB"]),  # noqa: S108 - the mount point
    ("host.disk", (host(),), ["500 GiB disk free"]),
    ("environment.visible-devices", (environment(), gpus(8), host(), pci()), ["all 8 GPUs visible"]),
    ("environment.visible-devices", (environment(), gpus(1), host(), pci(1)), ["1 GPU visible"]),
    (
        "environment.visible-devices",
        (environment(CUDA_VISIBLE_DEVICES="0,1"), gpus(8), host(), pci()),
        ["2 of 8 GPUs visible"],
    ),
)
def test_passing_check_gives_its_value(check_id: str, facts: tuple[FactGroup, ...], expected: list[str]) -> None:
    assert values(check_id, *facts) == expected


def test_python_is_named_once() -> None:
    assert set(values("versions.python-supported", *software())) <= {"Python 3.11.7"}


def trained(replicas: int, kind: str, **changes: Any) -> SmokeRun:
    case = smoke_case("mirrored", replicas, kind.upper(), **changes)
    return smoke_run("smoke.baseline", replicas, case, devices_kind=kind, gpus_seen=replicas if kind == "gpu" else None)


def test_baseline_gives_the_measured_difference() -> None:
    assert values("smoke.baseline", trained(8, "gpu", weight_deviation=6e-8)) == [
        "8 replicas, same weights as 1 device (within 6e-08)"
    ]
    assert values("smoke.baseline", trained(2, "cpu", weight_deviation=6e-8)) == [
        "2 CPU replicas, same weights as 1 device (within 6e-08)"
    ]
    assert values("smoke.baseline", trained(1, "gpu", measures={"numpy": 1.0}, weight_deviation=6e-8)) == [
        "1 replica, same weights as NumPy (within 6e-08)"
    ]


@cases(
    ("host.locked-memory", (host(limits=(ResourceLimit(name="memlock", soft=65536, hard=65536),)),)),
    ("host.shared-memory", (host(shm_total_bytes=64 * MIB, shm_free_bytes=60 * MIB),)),
    ("versions.cuda-build", (tensorflow(cuda_build=False), packages(), target())),
    ("versions.cuda-libraries", (without_wheels(), tensorflow(), packages(), target(), environment())),
    (
        "versions.libraries-searched",
        (libraries(missing("cusolver", other_copies=(OUTSIDE,))), tensorflow(), packages(), target(), environment()),
    ),
    (
        "versions.cudnn-for-build",
        (libraries(library("cudnn", version="9.1.0")), tensorflow(), packages(), target(), environment()),
    ),
    (
        "versions.xla-files",
        (libraries(xla_files=(XlaFile(name="ptxas", status="missing"),)), tensorflow(), packages(), target()),
    ),
)
def test_finding_about_gpus_comes_later_without_any_gpu(check_id: str, facts: tuple[FactGroup, ...]) -> None:
    def after(*more: FactGroup) -> set[tuple[str, ...]]:
        result = compute_check(CHECKS[check_id], *facts, *more)
        return {item.finding.after for item in result.findings}

    assert after(pci(0)) == {("driver.loaded",)}
    assert after(pci(2)) == {()}
    assert after() == {()}
