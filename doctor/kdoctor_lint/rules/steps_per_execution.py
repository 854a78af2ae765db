from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for event in trace.compiled:
        if event.steps is not None and is_mirrored(event.home):
            yield event.steps, f"`steps_per_execution` above 1 fails on several replicas{releases(trace)}"


RULE = Rule(
    id="lint.steps-per-execution",
    code="KD502",
    severity=Severity.ERROR,
    title="Checks for `steps_per_execution` above 1 under MirroredStrategy with Keras 3.",
    fix="Leave `steps_per_execution` at its default, 1.",
    sources=(*defect("smoke.steps-per-execution").source, SOURCE),
    judge=_judge,
)
