"""Whether a device that does not exist is refused."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of, place, where_it_waits
from kdoctor_checks.smoke._strategies import change_code, each_case


@check(
    "smoke.no-such-device",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.misuse",
)
def no_such_device(run: SmokeRun) -> Iterator[Outcome]:
    """A strategy over a device that does not exist is refused.

    Why: MirroredStrategy takes the names of devices as they are given. TensorFlow 2.21 makes variables and counts
    replicas on one that is not there, and the first step waits for ever. Only a job that names its devices by hand is
    concerned: hence a warning.
    Remedy: name no devices (MirroredStrategy() takes all that are visible), or take the names from
    tf.config.list_logical_devices.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if not case.workers:
            return Unjudged(subject=name_of(case), reason="its process was not watched")
        process = case.workers[0]
        if process.outcome == "raised":
            return Evidence(subject=name_of(case), observed=f"refused with {process.error_type}")
        ended = "kdoctor ended it" + (f" after {process.seconds:.0f} s" if process.seconds else "")
        how = {
            "timed-out": f"it says nothing and waits {place(process.phase)}{where_it_waits(case)}; {ended}",
            "trained": f"it trains on {case.replicas} replicas, one of which does not exist",
        }.get(process.outcome, f"it died of {process.signal or process.exit_code}")
        advice = "Take devices from tf.config.list_logical_devices('GPU'), or name none."
        return change_code(case, how, "an error", advice)

    yield from each_case(run, ("no-such-device",), judge, spread=False)
