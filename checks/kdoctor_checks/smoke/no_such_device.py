from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._cases import in_phase, innermost_frames
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_REMEDY = "Take the devices from tf.config.list_logical_devices('GPU'), or name none."


@trained("smoke.no-such-device", severity=Severity.WARNING, scenario="smoke.misuse", replicated=False)
def no_such_device(case: SmokeCase) -> Outcome:
    """A strategy with a device that does not exist raises an error.

    Why: MirroredStrategy does not check the device names that it is given. TensorFlow 2.21 creates variables and counts
    replicas on a missing device, and the first step waits forever. This is a warning because only jobs that name their
    devices are affected.
    Remedy: name no devices (MirroredStrategy() takes all that are visible), or take the names from
    tf.config.list_logical_devices.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
    Failure modes: missing_device_hang
    """
    if not case.workers:
        return unknown(case, "its process was not watched")
    process = case.workers[0]
    if process.outcome == "raised":
        return evidence(case, f"refused with {process.error_type}")
    ended = "kdoctor ended it" + (f" after {process.seconds:.0f} s" if process.seconds else "")
    observed = {
        "timed-out": f"waits {in_phase(process.phase)}{innermost_frames(case.stacks)} without an error; {ended}",
        "trained": f"trains on {counted(case.replicas, 'replica')}, one of which does not exist",
    }.get(process.outcome, f"terminated by {process.signal or process.exit_code}")
    brief = "waits forever for a device that does not exist" if process.outcome == "timed-out" else ""
    return finding(case, observed, "an error", _REMEDY, brief=brief)
