from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_watch.facts import Watched

_REMEDY = Remedy.inspect(
    "Look for throttled GPUs, a busy host, slower storage, or a model that is traced again.",
    "nvidia-smi -q -d PERFORMANCE,TEMPERATURE",
    "top -b -n 1 | head -20",
)


@check("watch.step-time", severity=Severity.WARNING)
def step_time(watched: Watched, *, factor: float = 1.5) -> Iterator[Outcome]:
    """Training steps stay as fast as at the beginning of the run.

    Why: a run that becomes slower loses hours, and the log does not show it. The median of at least 100 steps and 10
    seconds is compared with that of the first ones after the warm-up, so that single slow steps do not count. The
    slowest median of the run is judged. Validation and the time between epochs are left out.
    Remedy: compare clocks and temperatures of the GPUs, the load of the host, and the storage with the beginning.
    Source: https://www.tensorflow.org/guide/gpu_performance_analysis
    """
    steps = watched.steps
    if not (steps.baseline_s and steps.recent_s and steps.slowest_s):
        reason = f"{steps.timed} timed steps are too few: 100 and 10 s are needed at the beginning, and as many later"
        yield Unjudged(subject="steps", reason=reason)
        return
    beginning = f"{_milliseconds(steps.baseline_s)} at the beginning"
    if steps.slowest_s <= factor * steps.baseline_s:
        now = _milliseconds(steps.recent_s)
        yield Evidence(subject="steps", observed=f"{now} per step, {beginning}", brief=f"{now} per step")
        return
    slowest = f"{_milliseconds(steps.slowest_s)} per step around step {steps.slowest_at}"
    yield Finding(
        subject="steps",
        observed=f"{slowest}, {beginning} ({steps.slowest_s / steps.baseline_s:.2f} times)",
        brief="slower than at the beginning of the run",
        expected=f"at most {factor:g} times the beginning",
        remedy=_REMEDY,
    )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
