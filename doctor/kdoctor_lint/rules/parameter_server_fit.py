from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import fitted_under, on_keras_3


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for node in fitted_under("ParameterServerStrategy", trace):
        yield node, "`fit` of Keras 3 fails under ParameterServerStrategy"


RULE = Rule(
    id="lint.parameter-server-fit",
    code="KD508",
    severity=Severity.ERROR,
    title="Checks for `Model.fit` under ParameterServerStrategy with Keras 3.",
    fix="Use Keras 2 (`TF_USE_LEGACY_KERAS=1` and tf_keras), or a custom loop.",
    sources=(
        "https://www.tensorflow.org/tutorials/distribute/parameter_server_training",
        "measured with Keras 3.15.1 and TensorFlow 2.21.0, a cluster in one process",
    ),
    judge=_judge,
)
