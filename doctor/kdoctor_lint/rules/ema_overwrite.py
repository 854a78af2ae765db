from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._examples import MIRRORED, MODEL
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for event in trace.compiled:
        optimizer = event.optimizer
        scoped = is_mirrored(event.home)
        if optimizer is not None and optimizer.overwrites and scoped:
            yield optimizer.node, f"`ema_overwrite_frequency` fails on several replicas{releases(trace)}"


_BAD = f"""{MIRRORED}with strategy.scope():
    {MODEL}    optimizer = keras.optimizers.Adam(use_ema=True, ema_overwrite_frequency=100)
    model.compile(optimizer=optimizer, loss="mse")
"""
RULE = Rule(
    id="lint.ema-overwrite",
    code="KD507",
    severity=Severity.ERROR,
    title="Checks for `ema_overwrite_frequency` under MirroredStrategy with Keras 3.",
    why="""The first step on several replicas raises a RuntimeError about `merge_call`. `use_ema` alone works: `fit`
writes the averages to the weights at its end. tf_keras trains correctly, so scripts that use it are not reported.""",
    fix="Leave out `ema_overwrite_frequency`.",
    bad=_BAD,
    good=_BAD.replace(", ema_overwrite_frequency=100", ""),
    sources=(*defect("smoke.ema-overwrite").source, SOURCE),
    judge=_judge,
)
