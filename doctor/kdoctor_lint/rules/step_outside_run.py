from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED


def _judge(trace: Trace) -> Hits:
    for node, strategy, around in trace.stepped:
        if strategy is not None and strategy.kinds <= MIRRORED and not around & trace.handed:
            yield node, "gradients are applied in the scope, but not by a step that `strategy.run` executes"


RULE = Rule(
    id="lint.step-outside-run",
    code="KD106",
    severity=Severity.ERROR,
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training", MEASURED),
    judge=_judge,
)
