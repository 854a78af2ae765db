from collections.abc import Iterable, Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Environment, EventTime, Gpus, GpuSampling, SampledGpu, SmokeRuns
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_HW_SLOWDOWN, EVENT_NAMES, EVENT_SW_THERMAL_SLOWDOWN
from kdoctor.model import Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks._gpus import DRIVER, unsupported
from kdoctor_checks.gpu._clocks import CHILDREN
from kdoctor_checks.smoke._gpu_usage import ALL, NOTHING_TRAINED, used_gpus, why_not_sampled, why_nothing_sampled
from kdoctor_checks.smoke._judging import evidence, finding, unknown

_SLOWDOWNS = CHILDREN | EVENT_HW_SLOWDOWN | EVENT_SW_THERMAL_SLOWDOWN
_SLOWED = ("gpu.clocks", "gpu.thermal-slowdown", "gpu.temperature", "gpu.fan")
_MIN_SAMPLES_IN_A_ROW = 2
"""The common flags may be set for a moment when the performance state changes."""


@check("smoke.gpus-unslowed", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def gpus_unslowed(sampling: GpuSampling, runs: SmokeRuns, gpus: Gpus, environment: Environment) -> Iterator[Outcome]:
    """GPUs are not slowed down by heat or a power brake while training.

    Why: a GPU that is cool while idle may throttle within a minute of work, and then every replica waits for it. The
    driver is asked for the reasons about twice a second. A flag of heat or of the power brake counts in any sample. The
    common flags of hardware and driver can be set for a moment, so they count only in two consecutive samples. The
    power limit (SW Power Cap) limits every busy GPU, so its seconds are only evidence.
    Remedy: check cooling and power supplies. Smoke trainings are short, so watch the first minutes of the job, too.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    nothing = why_nothing_sampled(sampling)
    if nothing is not None:
        yield nothing
        return
    used = used_gpus(sampling, runs, gpus, environment)
    judged = {gpu.index: judge_slowdowns(sampling, gpu) for gpu in sampling.gpus}
    for subject in used.unsampled:
        yield unknown(subject, "it was not sampled")
    if used.uses:
        yield from (judged[index] for index in sorted(used.uses))
        return
    # A slowdown is reported in any case. Its absence proves nothing unless the GPU worked.
    yield from (outcome for outcome in judged.values() if isinstance(outcome, Finding))
    why = "; ".join(used.unknown_reasons) or "no training on GPUs finished"
    yield unknown(ALL, f"which of them trained is not known: {why}", NOTHING_TRAINED)


def judge_slowdowns(sampling: GpuSampling, gpu: SampledGpu) -> Outcome:
    """Whether heat or a power brake slowed one GPU down."""
    reason = why_not_sampled(sampling, gpu)
    if reason is None and not gpu.during.events and "clock_event_reasons" in gpu.errors:
        error = gpu.errors["clock_event_reasons"]
        if unsupported(error):
            return NotApplicable(reason=f"{gpu.name or gpu.subject} does not report clock event reasons")
        reason = f"clock event reasons were not read ({error})"
    if reason is None and gpu.hangs:
        reason = f"NVML's call for {gpu.hangs} did not return, after {counted(gpu.during.samples, 'sample')}"
    slowdowns = [event for event in gpu.during.events if event.bit & _SLOWDOWNS and _counts(event)]
    if slowdowns:
        return _finding(gpu, slowdowns)
    if reason is not None:
        return unknown(gpu.subject, reason)
    others = _durations(event for event in gpu.during.events if event.bit != EVENT_GPU_IDLE)
    observed = f"no slowdown in {counted(gpu.during.samples, 'sample')}{_state(gpu)}"
    return evidence(gpu.subject, f"{observed}; {others}" if others else observed)


def _counts(event: EventTime) -> bool:
    return bool(event.bit & CHILDREN) or event.in_a_row >= _MIN_SAMPLES_IN_A_ROW


def _durations(events: Iterable[EventTime]) -> str:
    return ", ".join(
        f"{EVENT_NAMES.get(event.bit, f'reason {event.bit:#x}')} {event.seconds:.1f} s" for event in events
    )


def _state(gpu: SampledGpu) -> str:
    """Temperature, power and clock during the trainings."""
    parts = []
    if gpu.during.temperature_c:
        limit = f" (slowdown at {gpu.temperature_slowdown_c} C)" if gpu.temperature_slowdown_c else ""
        parts.append(f"at most {gpu.during.temperature_c.high:.0f} C{limit}")
    if gpu.during.power_draw_w:
        limit = f" of {gpu.enforced_power_limit_w:.0f}" if gpu.enforced_power_limit_w else ""
        parts.append(f"{gpu.during.power_draw_w.high:.0f}{limit} W")
    if gpu.during.clock_sm_mhz:
        limit = f" of {gpu.clock_sm_max_mhz}" if gpu.clock_sm_max_mhz else ""
        clock = gpu.during.clock_sm_mhz
        parts.append(f"SM clock {clock.low:.0f} to {clock.high:.0f}{limit} MHz")
    return "".join(f", {part}" for part in parts)


def _finding(gpu: SampledGpu, slowdowns: list[EventTime]) -> Finding:
    bits = {event.bit for event in slowdowns}
    cases = [f"{use.scenario}/{use.case}" for use in gpu.cases if any(event.bit in bits for event in use.events)]
    during = f" during {some(cases, 2)}" if cases else ""
    remedy = Remedy.inspect(
        "Check cooling (fans, air flow, room temperature) and power supplies; the BMC logs their events.",
        f"nvidia-smi -i {quoted(gpu.bus_id or str(gpu.index))} -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK",
        "sudo ipmitool sel list",
    )
    observed = f"{_durations(slowdowns)}{during}{_state(gpu)}"
    expected, brief = "no slowdown by heat or a power brake", "slowed down by heat or a power brake in training"
    return finding(gpu.subject, observed, expected, remedy, brief=brief, explained_by=_SLOWED)
