from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import bit_equal, evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_REMEDY = "Save weights that were read from one replica instead, and compare them after loading."


@trained("smoke.persistence", tolerance=1e-06, replicated=False)
def persistence(case: SmokeCase, tolerance: float) -> Outcome:
    """Saved models load bit-equal on fewer replicas, and interrupted training resumes.

    Why: when a long job ends early, its checkpoint must load on whichever machine is free next, with fewer replicas.
    A training resumed by BackupAndRestore must end like an uninterrupted one (within ``tolerance``), which requires
    the optimizer's state.
    Remedy: save in another format, and compare the weights after loading before relying on it.
    Sources:
        https://www.tensorflow.org/tutorials/distribute/save_and_load
        https://keras.io/api/callbacks/backup_and_restore/
    """
    return _judge_resumed(case, tolerance) if case.name == "backup-and-restore" else _judge_loaded(case)


def _judge_loaded(case: SmokeCase) -> Outcome:
    return bit_equal(
        case,
        "equal on",
        expected="every variable bit-equal to what was saved",
        remedy=_REMEDY,
        describe=lambda places, equal: (
            f"saved on {counted(case.replicas, 'replica')}; loaded on {', '.join(places)}: {equal}"
        ),
    )


def _judge_resumed(case: SmokeCase, tolerance: float) -> Outcome:
    epochs, after = case.measures.get("epochs"), case.measures.get("epochs_after")
    if epochs is None or after is None or case.weights is None or case.weight_deviation is None:
        return unknown(case, "the resumed training was not compared")
    remaining = f"{after:.0f} of {counted(round(epochs), 'epoch')}"
    if after >= epochs:
        observed = f"{remaining} were trained after the interruption: it started over"
        return finding(case, observed, "it resumes", _REMEDY, brief="an interrupted training starts over")
    deviation = f"{case.weight_deviation:.2g}"
    if case.weight_deviation > tolerance:
        observed = f"weights differ by up to {deviation} from those of an uninterrupted training"
        brief = "a resumed training ends with other weights"
        return finding(case, observed, "the same weights", _REMEDY, brief=brief)
    return evidence(case, f"resumed with {remaining} left; weights within {deviation}")
