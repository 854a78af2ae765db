"""Judges how fast each GPU computes and copies, for the checks of TensorFlow and of JAX."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from statistics import median
from typing import NamedTuple

from kdoctor.facts import Gpus, SmokeCase, SmokeRun, Unavailable
from kdoctor.model import Finding, NotApplicable, Outcome, Remedy
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import NO_ROLLBACK, evidence, judge_cases, unknown
from kdoctor_checks.smoke._replica_gpus import replica_gpus

EXPLAINED_BY = (
    "gpu.clocks",
    "gpu.clocks-limited",
    "gpu.thermal-slowdown",
    "gpu.power-limit",
    "gpu.equal-power-limits",
    "gpu.temperature",
    "gpu.free",
    "smoke.gpus-unslowed",
)


class Peak(NamedTuple):
    """Published rates of a model: dense float16 with tensor cores, and memory bandwidth."""

    tflops: float
    gbs: float


PEAKS: Mapping[str, Peak] = {
    "Tesla V100-SXM2*": Peak(125, 900),
    "Tesla V100-PCIE*": Peak(112, 900),
    "Tesla T4": Peak(65, 320),
    "NVIDIA A100-SXM4-40GB": Peak(312, 1555),
    "NVIDIA A100-SXM4-80GB": Peak(312, 2039),
    "NVIDIA A100-PCIE-40GB": Peak(312, 1555),
    "NVIDIA A100 80GB PCIe": Peak(312, 1935),
    "NVIDIA A10": Peak(125, 600),
    "NVIDIA A30": Peak(165, 933),
    "NVIDIA L4": Peak(121, 300),
    "NVIDIA L40S": Peak(362, 864),
    "NVIDIA H100 80GB HBM3": Peak(989, 3350),
    "NVIDIA H100 PCIe": Peak(756, 2000),
    "NVIDIA H200": Peak(989, 4800),
}
"""Pattern of the driver's name to NVIDIA's data sheet (https://www.nvidia.com/en-us/data-center/, the page of each
model). Rates with sparsity are halved."""


def judge_compute(run: SmokeRun, gpus: Gpus | Unavailable, slowest_share: float) -> Iterator[Outcome]:
    """One outcome per GPU: its rates compared with the median of the other GPUs of its model, if there are any."""

    def judge(case: SmokeCase) -> Iterator[Outcome]:
        if run.devices_kind == "cpu":
            yield NotApplicable(reason="the devices are parts of one CPU, whose speed says nothing about GPUs")
        elif not case.devices:
            yield unknown(case, "no device was measured")
        else:
            yield from _each(case, gpus, slowest_share)

    yield from judge_cases(run, ("each-device",), judge, replicated=False)


def _each(case: SmokeCase, gpus: Gpus | Unavailable, slowest_share: float) -> Iterator[Outcome]:
    found = replica_gpus(case, gpus)
    models = [gpu.name if gpu else None for gpu in found.gpus]
    rates = {
        what: [case.measures.get(f"{what} {place}") for place in range(len(models))] for what in ("tflops", "copy_gbs")
    }
    for place, name in enumerate(found.names):
        own = {what: values[place] for what, values in rates.items()}
        if None in own.values():
            yield unknown(name, "its speed was not measured")
            continue
        equal = [other for other, model in enumerate(models) if other != place and model and model == models[place]]
        slow, usual = [], {}
        for what, values in rates.items():
            others = [value for other in equal if (value := values[other])]
            usual[what] = median(others) if others else None
            if usual[what] and (own[what] or 0) < slowest_share * (usual[what] or 0):
                slow.append(what)
        observed = _rates(own, PEAKS.get(_known(models[place]) or ""))
        if slow:
            yield _finding(name, observed, slow, usual, slowest_share)
        elif models[place] is None:
            yield unknown(name, f"{observed}; its model is not known, so it is not compared with other GPUs")
        elif not equal:
            yield NotApplicable(reason=f"{name}: {observed}; no other GPU of its model to compare it with")
        elif None in usual.values():
            yield unknown(name, f"{observed}; the speed of the others of its model was not measured")
        else:
            yield evidence(name, f"{observed}; median of {counted(len(equal), 'other')}: {_rates(usual)}")


def _known(model: str | None) -> str | None:
    return next((pattern for pattern in PEAKS if fnmatchcase(model or "", pattern)), None)


def _rates(rates: Mapping[str, float | None], peak: Peak | None = None) -> str:
    tflops, gbs = rates["tflops"] or 0.0, rates["copy_gbs"] or 0.0
    shares = f" ({tflops / peak.tflops:.0%} and {gbs / peak.gbs:.0%} of the published rates)" if peak else ""
    return f"{tflops:.3g} TFLOP/s in float16, {gbs:.4g} GB/s{shares}"


def _finding(
    name: str, observed: str, slow: list[str], usual: Mapping[str, float | None], slowest_share: float
) -> Finding:
    words = {"tflops": "computes", "copy_gbs": "copies memory"}
    return Finding(
        subject=name,
        observed=f"{observed}; the median of the others of its model is {_rates(usual)}",
        brief=f"{' and '.join(words[what] for what in slow)} slower than the others",
        expected=f"at least {slowest_share:.0%} of the median of the other GPUs of its model",
        remedy=Remedy.inspect(
            "Look for heat, a power limit or another process on this GPU. If there is none, have it serviced.",
            "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK",
            "nvidia-smi --query-compute-apps=pid,name --format=csv",
        ),
        rollback=NO_ROLLBACK,
        explained_by=EXPLAINED_BY,
    )
