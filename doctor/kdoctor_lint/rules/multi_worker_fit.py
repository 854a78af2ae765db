from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE_FROM_OLDEST, fitted_under, on_keras_3


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for node in fitted_under("MultiWorkerMirroredStrategy", trace):
        yield node, "`fit` of Keras 3 fails on several workers under MultiWorkerMirroredStrategy"


RULE = Rule(
    id="lint.multi-worker-fit",
    code="KD511",
    severity=Severity.WARNING,
    title="Checks for `Model.fit` under MultiWorkerMirroredStrategy with Keras 3.",
    fix="Train with a custom loop (`strategy.run`), or with Keras 2 (`TF_USE_LEGACY_KERAS=1` and tf_keras).",
    sources=("https://github.com/keras-team/keras/issues/20585", SOURCE_FROM_OLDEST),
    judge=_judge,
)
