from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import in_phase, innermost_frames
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_REMEDY = (
    "Use a launcher that ends all workers when one is lost (srun --kill-on-bad-exit=1, a Kubernetes Job), "
    "with a deadline."
)


@trained("smoke.lost-worker", severity=Severity.WARNING, replicated=False)
def lost_worker(case: SmokeCase) -> Outcome:
    """Remaining workers raise an error soon after one is lost.

    Why: collectives wait for all workers. TensorFlow 2.21 notices a dead worker after about ten seconds, but silently
    waits for one that never started until the cluster's start times out. Machines are paid for while they wait.
    Remedy: use a launcher that ends all workers when one is lost (srun --kill-on-bad-exit, a Kubernetes Job with a
    restart policy). Set a deadline for the start.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
    Failure modes: absent_worker_hang
    """
    if not case.workers or "patience_s" not in case.measures:
        return unknown(case, "the workers were not watched")
    first, waited = case.workers[0], case.measures.get("others_s")
    if first.outcome == "timed-out" or waited is None:
        patience = case.measures["patience_s"] or 0
        waits = f"{first.name} waits {in_phase(first.phase)}{innermost_frames(case.stacks)} without an error"
        observed = f"{waits}; kdoctor ended it after {patience:.0f} s"
        brief = "the other workers wait without an error"
        return finding(case, observed, "an error within seconds", _REMEDY, brief=brief)
    if first.outcome == "trained":
        remedy = "Do not rely on collectives that continue with some of the workers."
        return finding(case, f"{first.name} continued training alone", "an error", remedy)
    error = first.error_type or first.signal or "an exit"
    return evidence(case, f"{first.name} ended with {error} after {waited:.0f} s")
