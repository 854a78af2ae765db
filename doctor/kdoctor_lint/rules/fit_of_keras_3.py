from functools import partial

from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import SINGLE
from kdoctor_lint.rules._keras_features import SOURCE_FROM_OLDEST, on_keras_3


@on_keras_3
def _judge(trace: Trace, *, kind: str, where: str = "") -> Hits:
    """Calls of ``fit`` that a strategy of this kind trains in every branch of the script."""
    for event in trace.fitted:
        if event.home is not None and event.home.kinds - SINGLE == {kind}:
            yield event.node, f"`fit` of Keras 3 fails {where}under {kind}"


WORKERS = Rule(
    id="lint.multi-worker-fit",
    code="KD511",
    severity=Severity.WARNING,
    sources=("https://github.com/keras-team/keras/issues/20585", SOURCE_FROM_OLDEST),
    judge=partial(_judge, kind="MultiWorkerMirroredStrategy", where="on several workers "),
)
SERVERS = Rule(
    id="lint.parameter-server-fit",
    code="KD508",
    severity=Severity.ERROR,
    judge=partial(_judge, kind="ParameterServerStrategy"),
)
