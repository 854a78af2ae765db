from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import SINGLE

_WORKERS = {"MultiWorkerMirroredStrategy"}


def _judge(trace: Trace) -> Hits:
    kinds = {kind for strategy in trace.strategies for kind in strategy.kinds}
    for saved in trace.saved:
        if kinds - SINGLE != _WORKERS and not (saved.strategy and saved.strategy.kinds >= _WORKERS):
            continue
        # In Keras 2, ModelCheckpoint writes to a different path on each worker.
        # /tmp is not shared.
        if not (saved.what == "ModelCheckpoint" and trace.legacy) and not saved.path.startswith("/tmp/"):  # noqa: S108
            yield saved.node, f"`{saved.what}` writes to {saved.path!r} on every worker"


RULE = Rule(id="lint.save-from-every-worker", code="KD304", severity=Severity.WARNING, judge=_judge)
