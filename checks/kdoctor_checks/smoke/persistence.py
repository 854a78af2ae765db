"""Whether what was saved is what is loaded, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of
from kdoctor_checks.smoke._strategies import bit_equal, change_code, each_case

_ADVICE = "Do not rely on this way to save: write weights that were read from one replica, and compare after loading."


@check(
    "smoke.persistence",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.persistence",
)
def persistence(run: SmokeRun, *, tolerance: float = 1e-6) -> Iterator[Outcome]:
    """A model saved on all replicas is loaded bit by bit on fewer, and an interrupted training resumes.

    Why: a checkpoint is what is left of a long job when it ends early. It has to load on the machine that is free
    next, with fewer replicas. BackupAndRestore has to end where an undisturbed training ends (within
    ``tolerance``), which it does only if the optimizer's state came along.
    Remedy: save in another format, and compare the weights after loading before relying on it.
    Sources:
        https://www.tensorflow.org/tutorials/distribute/save_and_load
        https://keras.io/api/callbacks/backup_and_restore/
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        return _resumed(case, tolerance) if case.name == "backup-and-restore" else _loaded(case)

    yield from each_case(run, ("model-file", "weights-file", "backup-and-restore"), judge, spread=False)


def _loaded(case: SmokeCase) -> Outcome:
    return bit_equal(
        case,
        "equal on",
        expected="every variable bit by bit what was saved",
        advice=_ADVICE,
        words=lambda sizes, equal: f"saved on {case.replicas} replicas; loaded on {', '.join(sizes)}: {equal}",
    )


def _resumed(case: SmokeCase, tolerance: float) -> Outcome:
    epochs, after = case.measures.get("epochs"), case.measures.get("epochs_after")
    if epochs is None or after is None or case.weights is None or case.weight_deviation is None:
        return Unjudged(subject=name_of(case), reason="the resumed training was not compared")
    if after >= epochs:
        observed = f"{after:.0f} of {epochs:.0f} epochs were trained after the interruption: it began anew"
        return change_code(case, observed, "it resumes", _ADVICE)
    if case.weight_deviation > tolerance:
        observed = f"resumed, the weights differ by up to {case.weight_deviation:.2g} from an undisturbed training's"
        return change_code(case, observed, "the same weights", _ADVICE)
    return Evidence(
        subject=name_of(case),
        observed=f"resumed with {after:.0f} of {epochs:.0f} epochs to go; weights within {case.weight_deviation:.2g}",
    )
