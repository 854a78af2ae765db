from kdoctor.defects import defect
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for optimizer, strategy in trace.built_late:
        if optimizer.slots and optimizer.place is Place.INSIDE and is_mirrored(strategy):
            late = (
                f"`{optimizer.algorithm or 'Optimizer'}` creates its variables in the first step, inside `tf.function`"
            )
            yield optimizer.node, f"{late}, and fails{releases(trace)}"


RULE = Rule(
    id="lint.optimizer-built-late",
    code="KD503",
    severity=Severity.ERROR,
    sources=(*defect("smoke.optimizer-built-late").source, SOURCE),
    judge=_judge,
)
