from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for event in trace.compiled:
        optimizer = event.optimizer
        scoped = is_mirrored(event.home)
        if optimizer is not None and optimizer.overwrites and scoped:
            yield optimizer.node, f"`ema_overwrite_frequency` fails on several replicas{releases(trace)}"


RULE = Rule(
    id="lint.ema-overwrite",
    code="KD507",
    severity=Severity.ERROR,
    title="Checks for `ema_overwrite_frequency` under MirroredStrategy with Keras 3.",
    fix="Leave out `ema_overwrite_frequency`.",
    sources=(*defect("smoke.ema-overwrite").source, SOURCE),
    judge=_judge,
)
