from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_checks.smoke._judging import evidence, finding, loss_falls, unknown
from kdoctor_checks.smoke._trained import trained


@trained("smoke.parameter-server", replicated=False)
def parameter_server(case: SmokeCase) -> Outcome:
    """A custom loop trains under ParameterServerStrategy.

    Why: this is the strategy for workers that join and leave. Here all processes run on this machine's CPU, to test
    that they find each other and that a custom loop (ClusterCoordinator.schedule) learns. The order of the updates is
    random, so the weights only have to be finite, and the loss has to fall.
    Remedy: find the process that raised or crashed; a firewall or proxy on the loopback interface is the most common
    cause.
    Source: https://www.tensorflow.org/tutorials/distribute/parameter_server_training
    """
    weights, finite = case.measures.get("weights"), case.measures.get("finite")
    if weights is None or finite is None or len(case.losses) < 2:  # noqa: PLR2004 - a fall needs two
        return unknown(case, "its weights or its losses were not read")
    losses = f"losses {format_losses(case.losses)}"
    if finite < weights or not loss_falls(case):
        observed = f"{finite:.0f} of {weights:.0f} weights are finite; {losses}"
        remedy = "Do not train with parameter servers on this TensorFlow and Keras."
        expected, brief = "finite weights and a falling loss", "weights are not finite, or the loss does not fall"
        return finding(case, observed, expected, remedy, brief=brief)
    return evidence(case, f"{case.measures.get('workers') or 0:.0f} workers; {losses}")
