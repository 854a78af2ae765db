from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_watch.facts import ReplicaDifference, Watched

_REMEDY = Remedy.inspect(
    "Stop the job, continue from a checkpoint of before that step, and examine the device that differs.",
    "nvidia-smi -q -d ECC,ROW_REMAPPER",
    "sudo dmesg | grep -iE 'NVRM|Xid'",
    "kdoctor smoke --tier standard",
)
_ROLLBACK = Rollback.irreversible("training steps cannot be undone: continue from a checkpoint")


@check("watch.replicas-equal", severity=Severity.ERROR)
def replicas_equal(watched: Watched) -> Iterator[Outcome]:
    """The replicas' variables stay equal, bit by bit.

    Why: each replica applies the same gradients to the same values, so that their variables are equal after each step.
    A copy that differs comes from a fault in memory, from a reduction that went wrong, or from code that assigns a
    variable on one replica. From then on, each replica trains another model, and the checkpoint has only one of them.
    Values that each replica has for itself are not compared: metrics, and variables that a layer assigns without an
    aggregation, such as the moving statistics of BatchNormalization in Keras 3.
    Remedy: continue from a checkpoint of before the first difference. Examine the GPU; if many variables differ at
    once, look for code that assigns variables in a replica.
    Source: https://www.tensorflow.org/guide/distributed_training#mirroredstrategy
    """
    found = watched.replicas
    for difference in found.differences:
        device = difference.device.rpartition("device:")[2]
        yield Finding(
            subject=f"{difference.variable} on replica {difference.replica} ({device})",
            observed=_describe(difference),
            brief="differs from the other replicas",
            expected="the same bits on all replicas",
            remedy=_REMEDY,
            rollback=_ROLLBACK,
        )
    if found.unavailable is not None:
        yield Unjudged(subject="replicas", reason=f"the variables were not read: {found.unavailable}")
    elif not found.checks:
        yield Unjudged(subject="replicas", reason="no training step ended while it was watched")
    elif found.replicas == 1:
        yield NotApplicable(reason="this process trains one replica")
    elif not found.variables:
        yield Unjudged(subject="replicas", reason="no variable has a copy on each replica")
    elif not found.differences:
        observed = (
            f"{counted(found.variables, 'variable')} on {counted(found.replicas, 'replica')} equal in "
            f"{counted(found.checks, 'comparison')}, the last one after step {found.last_step}"
        )
        yield Evidence(subject="replicas", observed=observed, brief=f"{counted(found.replicas, 'replica')} equal")


def _describe(found: ReplicaDifference) -> str:
    of = f"{found.values} of {counted(found.of, 'value')}" if found.values is not None and found.of else "a value"
    verb = "differs" if found.values == 1 else "differ"
    since = "never compared before" if found.equal_at is None else f"equal after step {found.equal_at}"
    largest = f", by at most {found.largest:.3g}" if found.largest is not None else ""
    return f"{of} {verb} from replica {found.other}{largest}, found after step {found.step} ({since})"
