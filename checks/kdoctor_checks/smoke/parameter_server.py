"""Whether a coordinator, a parameter server and workers train together."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of, show
from kdoctor_checks.smoke._strategies import change_code, each_case, falls


@check(
    "smoke.parameter-server",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.parameter-server",
)
def parameter_server(run: SmokeRun) -> Iterator[Outcome]:
    """A coordinator trains over worker processes whose variables a parameter server holds.

    Why: it is the strategy for workers that come and go. Here all processes are on this machine and on the CPU: what
    is tried is that they find each other and that a custom loop (ClusterCoordinator.schedule) learns. The order of the
    updates is chance, so the weights are held against nothing but being finite, and the loss has to fall.
    Remedy: see which process raised or died; a firewall or a proxy on the loopback is the commonest cause.
    Source: https://www.tensorflow.org/tutorials/distribute/parameter_server_training
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        weights, finite = case.measures.get("weights"), case.measures.get("finite")
        if weights is None or finite is None or len(case.losses) < 2:  # noqa: PLR2004 - a fall needs two
            return Unjudged(subject=name_of(case), reason="its weights or its losses were not read")
        if finite < weights or not falls(case):
            observed = f"{finite:.0f} of {weights:.0f} weights are finite; losses {show(case.losses)}"
            advice = "Do not train by parameter servers with this TensorFlow and Keras."
            return change_code(case, observed, "finite weights and a falling loss", advice)
        workers = case.measures.get("workers")
        return Evidence(subject=name_of(case), observed=f"{workers or 0:.0f} workers; losses {show(case.losses)}")

    yield from each_case(run, ("custom-loop",), judge, spread=False)
