from kdoctor_lint.flow.values import Many, Number, Table, Value
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import SINGLE, WORKERS
from kdoctor_lint.rules._batches import has_workers
from kdoctor_lint.rules.models_of_keras_3 import fit_of_workers


def _judge_paths(trace: Trace, *, chosen: bool = False) -> Hits:
    certain = {kind for strategy in trace.strategies for kind in strategy.kinds} - SINGLE == WORKERS
    for saved in trace.saved:
        if certain is chosen or not (certain or (saved.strategy and saved.strategy.kinds & WORKERS)):
            continue
        # In Keras 2, ModelCheckpoint writes to a different path on each worker. /tmp is not shared.
        if not (saved.what == "ModelCheckpoint" and trace.legacy) and not saved.path.startswith("/tmp/"):  # noqa: S108
            yield saved.node, f"`{saved.what}` writes to {saved.path!r} on every worker"


def _judge_chosen(trace: Trace) -> Hits:
    yield from fit_of_workers(trace, chosen=True)
    yield from _judge_paths(trace, chosen=True)


def _judge_index(trace: Trace) -> Hits:
    for node, name, config in trace.variables if any(map(has_workers, trace.strategies)) else ():
        workers, index = _at(_at(config, "cluster"), "worker"), _at(_at(config, "task"), "index")
        several = isinstance(workers, Many) and len(workers.items) > 1
        if name == "TF_CONFIG" and several and isinstance(index, Number) and index.value is not None:
            yield node, f"every process of this script is worker {index.value:g}"


def _at(value: Value | None, key: str) -> Value | None:
    return value.items.get(key) if isinstance(value, Table) else None


SAVE = Rule(id="lint.save-from-every-worker", code="KD304", severity=Severity.WARNING, judge=_judge_paths)
CHOSEN = Rule(id="lint.chosen-workers", code="KD311", severity=Severity.INFO, judge=_judge_chosen)
INDEX = Rule(id="lint.literal-worker-index", code="KD309", severity=Severity.INFO, judge=_judge_index)
