from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Outcome, Remedy, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import in_phase
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, did_not_finish, finding, judge_cases

_REMEDY = Remedy(
    summary="Compile with steps_per_execution=1 when training on several replicas, or run several steps in one "
    "tf.function of a custom loop.",
    action=Action.CHANGE_CODE,
    look=("kdoctor explain --reproduce steps-per-execution",),
)
_ERROR = "InvalidArgumentError"
"""What Keras 3 raises: TensorFlow asks for the value of a placeholder."""


@check(
    "smoke.steps-per-execution",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.features",
)
def steps_per_execution(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Training with steps_per_execution=2 on all replicas matches one device.

    Why: several steps per execution save time between short steps. Keras 3 on TensorFlow raises InvalidArgumentError
    in the first step if there are several replicas. This is a warning because only jobs that use the option are
    affected; job.steps-per-execution is an error for such a job. The case steps-in-function and smoke.baseline train
    the alternatives.
    Remedy: compile with steps_per_execution=1, or run several steps in one tf.function of a custom loop, or train with
    tf_keras.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_steps_per_execution
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.error_type == _ERROR:
            explained_by = ("job.steps-per-execution",)
            brief = "more than one step fails on several replicas"
            return finding(
                case,
                f"{_ERROR} {in_phase(case.phase)} ({keras_of(run)})",
                "it trains",
                _REMEDY,
                brief=brief,
                explained_by=explained_by,
            )
        return compare.judge(case) if case.outcome == "trained" else did_not_finish(run, case)

    yield from judge_cases(run, ("steps-per-execution",), judge, trained=False)
    yield from judge_cases(run, ("steps-in-function",), compare.judge)
