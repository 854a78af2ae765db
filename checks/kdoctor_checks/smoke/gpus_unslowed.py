"""Whether heat or the power supply slowed a GPU down while it trained."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, EventTime, Gpus, GpuSampling, SampledGpu, SmokeRuns
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_HW_SLOWDOWN, EVENT_NAMES, EVENT_SW_THERMAL_SLOWDOWN
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._gpus import READ_ONLY, unsupported
from kdoctor_checks.gpu._clocks import CHILDREN
from kdoctor_checks.smoke._sampled import ALL, nothing_sampled, used_gpus, why_no_sample

_SLOWS = CHILDREN | EVENT_HW_SLOWDOWN | EVENT_SW_THERMAL_SLOWDOWN
_LASTS = 2
"""Samples one after another: the parent flag and the driver's may flash when the performance state changes."""


@check("smoke.gpus-unslowed", severity=Severity.WARNING, needs_gpus=True)
def gpus_unslowed(sampling: GpuSampling, runs: SmokeRuns, gpus: Gpus, environment: Environment) -> Iterator[Outcome]:
    """Nothing slowed a GPU down while it trained: no heat, no power brake.

    Why: a GPU that is cool while it idles may throttle within a minute of work, and then every replica waits for it.
    The driver was asked for the reasons about twice a second. A flag of heat or of the power brake counts in any
    sample; the hardware's common flag and the driver's own, which flash, count in two samples one after another. The
    power limit (SW Power Cap) holds back every busy GPU by nature, so that its seconds are evidence.
    Remedy: look at cooling and power supplies; smoke trainings are short, so watch the first minutes of the job, too.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    silent = nothing_sampled(sampling)
    if silent is not None:
        yield silent
        return
    used = used_gpus(sampling, runs, gpus, environment)
    judged = {gpu.index: _judge(sampling, gpu) for gpu in sampling.gpus}
    if used.uses:
        yield from (judged[index] for index in sorted(used.uses))
        return
    # A GPU that was slowed is told in any case; one that was not proves nothing unless it worked.
    yield from (outcome for outcome in judged.values() if isinstance(outcome, Finding))
    why = "; ".join(used.untold) or "no training over GPUs came to its end"
    yield Unjudged(subject=ALL, reason=f"which of them trained is not known: {why}")


def _judge(sampling: GpuSampling, gpu: SampledGpu) -> Outcome:
    reason = why_no_sample(sampling, gpu)
    if reason is None and not gpu.during.events and "clock_event_reasons" in gpu.errors:
        error = gpu.errors["clock_event_reasons"]
        if unsupported(error):
            return NotApplicable(reason=f"{gpu.name or gpu.subject} does not tell why its clocks are not higher")
        reason = f"the clocks' event reasons were not read ({error})"
    if reason is None and gpu.hangs:
        reason = f"NVML's call for {gpu.hangs} did not return, after {gpu.during.samples} samples"
    found = [event for event in gpu.during.events if event.bit & _SLOWS and _counts(event)]
    if found:
        return _finding(gpu, found)
    if reason is not None:
        return Unjudged(subject=gpu.subject, reason=reason)
    told = _times([event for event in gpu.during.events if event.bit != EVENT_GPU_IDLE])
    held = f"; {told}" if told else ""
    return Evidence(subject=gpu.subject, observed=f"no slowdown in {gpu.during.samples} samples{_state(gpu)}{held}")


def _counts(event: EventTime) -> bool:
    return bool(event.bit & CHILDREN) or event.in_a_row >= _LASTS


def _times(events: list[EventTime]) -> str:
    return ", ".join(
        f"{EVENT_NAMES.get(event.bit, f'reason {event.bit:#x}')} {event.seconds:.1f} s" for event in events
    )


def _state(gpu: SampledGpu) -> str:
    """How hot it became, how much power it drew, how fast it ran."""
    parts = []
    if gpu.during.temperature_c:
        limit = f" (slows down at {gpu.temperature_slowdown_c})" if gpu.temperature_slowdown_c else ""
        parts.append(f"at most {gpu.during.temperature_c.high:.0f} degrees C{limit}")
    if gpu.during.power_draw_w:
        limit = f" of {gpu.enforced_power_limit_w:.0f}" if gpu.enforced_power_limit_w else ""
        parts.append(f"{gpu.during.power_draw_w.high:.0f}{limit} W")
    if gpu.during.clock_sm_mhz:
        limit = f" of {gpu.clock_sm_max_mhz}" if gpu.clock_sm_max_mhz else ""
        clock = gpu.during.clock_sm_mhz
        parts.append(f"SM clock {clock.low:.0f} to {clock.high:.0f}{limit} MHz")
    return "".join(f", {part}" for part in parts)


def _finding(gpu: SampledGpu, found: list[EventTime]) -> Finding:
    bits = {event.bit for event in found}
    cases = [f"{use.scenario}/{use.case}" for use in gpu.cases if any(event.bit in bits for event in use.events)]
    during = f" during {some(cases, 2)}" if cases else ""
    return Finding(
        subject=gpu.subject,
        observed=f"{_times(found)}{during}{_state(gpu)}",
        expected="no slowdown by heat or by the power brake",
        remedy=Remedy(
            summary="Look at cooling (fans, air flow, the room) and at the power supplies; their log is in the "
            "machine's BMC.",
            action=Action.INSPECT_HARDWARE,
            commands=(
                f"nvidia-smi -i {gpu.bus_id or gpu.index} -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK",
                "sudo ipmitool sel list",
            ),
        ),
        rollback=READ_ONLY,
    )
