"""Reads what trainings with and without an option of the job showed on this machine."""

from collections.abc import Mapping
from typing import NamedTuple

from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Finding, Remedy
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import job_of, replicas_of
from kdoctor_job.facts import JobModel, JobOption, JobTraining

TOLERANCE = 0.01
"""Largest difference of the weights with the job's own optimizer, see job.equals-one-device."""
PRECISE = 0.001
"""The same for copies that compute in float64, where rounding changes 1e-8 at most."""
SHARE = 0.1
"""An option is correct if the replicas differ from one device by at most this share of what the option changes there,
and the cause if they differ by at most this share without it."""

STATE = "state of layers"
"""The option that holds what the job's own code assigns to variables. Its value names them."""
MOSTLY = 0.5
"""If rounding decides a larger share of the weights, the job is not compared."""


def option_of(run: SmokeRun, name: str) -> JobOption | None:
    """What was measured about an option; None if nothing was."""
    training = job_of(run).training
    return next((one for one in training.options if one.name == name), None) if training else None


def used_options(run: SmokeRun, model: JobModel) -> Mapping[str, str] | None:
    """The options of the job and how it uses them; None if they were not read."""
    training = job_of(run).training
    later = training.options_when_built if training else {}
    return None if model.options is None else {**model.options, **later}


def is_compared(training: JobTraining | None, name: str) -> bool:
    """Whether the job was trained with the option, and its weights matched one device."""
    own = training.own if training else None
    return (
        own is not None
        and name not in own.without
        and own.deviation is not None
        and own.deviation <= (PRECISE if own.precise else TOLERANCE)
        and own.rounded_share <= MOSTLY
        and (name != "steps_per_execution" or training is None or training.steps > 1)
    )


class Judged(NamedTuple):
    """What a check says about a feature of the job."""

    subject: str
    expected: str
    """What a problem should be instead."""
    remedy: Remedy | str
    brief: str
    """The short form of a problem."""

    def finding(self, observed: str) -> Finding:
        """A problem."""
        return finding(self.subject, observed, self.expected, self.remedy, brief=self.brief)


def judge_measured(run: SmokeRun, name: str, used: str, judged: Judged) -> Evidence | Finding | None:
    """What this machine showed about an option that the job uses in this way; None if it did not show it."""
    subject = judged.subject
    on = f"{used} on {counted(replicas_of(run), 'replica')}"
    option = option_of(run, name)
    if option is None and is_compared(job_of(run).training, name):
        return evidence(subject, f"{on}: weights match one device's (measured here)")
    problem = _problem(option) if option else None
    if problem:
        return judged.finding(f"{on}: {problem} (measured here)")
    if option is None or option.deviation is None or option.effect is None:
        return None
    if option.deviation > SHARE * min(option.effect, SHARE):
        return None
    observed = f"{on}: weights match one device's within {option.deviation:.0e}, and it changes them by "
    return evidence(subject, f"{observed}{option.effect:.2g} (measured here)")


def _problem(option: JobOption) -> str | None:
    """What is wrong with the option; None if nothing is known to be."""
    if option.problem:
        return f"{option.problem.removesuffix('.')}. But for that, the job trains"
    if option.deviation is None or option.without is None or option.without > SHARE * option.deviation:
        return None
    return f"weights differ from one device's by {option.deviation:.2g}, without it by {option.without:.2g}"
