from kdoctor_lint.flow.values import Many, Number, Table, Value
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import has_workers


def _judge(trace: Trace) -> Hits:
    for node, name, config in trace.variables if any(map(has_workers, trace.strategies)) else ():
        workers, index = _at(_at(config, "cluster"), "worker"), _at(_at(config, "task"), "index")
        several = isinstance(workers, Many) and len(workers.items) > 1
        if name == "TF_CONFIG" and several and isinstance(index, Number) and index.value is not None:
            yield node, f"every process of this script is worker {index.value:g}"


def _at(value: Value | None, key: str) -> Value | None:
    return value.items.get(key) if isinstance(value, Table) else None


RULE = Rule(id="lint.literal-worker-index", code="KD309", severity=Severity.INFO, judge=_judge)
