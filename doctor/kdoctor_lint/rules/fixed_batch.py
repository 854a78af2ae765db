from kdoctor_lint.flow.trace import literal
from kdoctor_lint.flow.values import WORKERS
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import count_names, divided_batches, has_workers, is_global, is_per_replica, shown


def _judge(trace: Trace) -> Hits:
    for strategy, node, size, where in divided_batches(trace):
        if has_workers(strategy) and size.growth == WORKERS:
            yield node, f"`{where}` gets a size that counts the workers, and not the devices of each"
        if count_names(size) or is_per_replica(size) or is_global(size) or size.keys & (trace.scaled | trace.divided):
            continue
        if literal(size) is not None:
            yield node, f"`{where}` gets a fixed size of {size.value:g} for any number of replicas"
        elif size.given:
            yield node, f"`{where}` gets {shown(size)} as it is, for any number of replicas"


RULE = Rule(id="lint.fixed-batch", code="KD203", severity=Severity.INFO, judge=_judge)
