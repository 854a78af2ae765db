"""Whether Model.fit works with parameter servers."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor_checks.smoke._cases import name_of, show
from kdoctor_checks.smoke._strategies import each_case, falls, unsupported


@check(
    "smoke.parameter-server-fit",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.parameter-server",
)
def parameter_server_fit(run: SmokeRun) -> Iterator[Outcome]:
    """Model.fit trains under ParameterServerStrategy.

    Why: Keras 3 on TensorFlow does not support it (3.15.1 asks for ClusterCoordinator.create_per_worker_dataset,
    which fit does not call); tf_keras does. Only a job that uses parameter servers is concerned: hence a warning.
    Remedy: set TF_USE_LEGACY_KERAS=1 with tf_keras installed, or write the training loop by hand with
    ClusterCoordinator.schedule (smoke.parameter-server tries one).
    Source: https://www.tensorflow.org/tutorials/distribute/parameter_server_training
    """

    def judge(case: SmokeCase) -> Outcome:
        finite, weights = case.measures.get("finite"), case.measures.get("weights")
        if case.outcome == "trained" and falls(case) and weights and finite == weights:
            return Evidence(subject=name_of(case), observed=f"losses {show(case.losses)}")
        return unsupported(
            run,
            case,
            "ParameterServerStrategy",
            "Use tf_keras (pip install tf-keras; export TF_USE_LEGACY_KERAS=1), or ClusterCoordinator.schedule in a "
            "custom training loop.",
        )

    yield from each_case(run, ("fit",), judge, spread=False)
