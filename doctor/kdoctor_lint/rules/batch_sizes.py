from kdoctor_lint.flow.trace import literal
from kdoctor_lint.flow.values import WORKERS, Number
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules import _batches as batches
from kdoctor_lint.rules._batches import count_names, divided_batches, shown


def _judge(trace: Trace) -> Hits:
    for strategy, node, size, where in divided_batches(trace):
        if count_names(size) or not batches.is_one_replica(trace, size, strategy):
            continue
        if size.scaled:
            yield node, f"`{where}` gets a size for the devices of one worker, not for all workers"
        elif size.keys & trace.scaled:
            yield node, f"`{where}` gets {shown(size)}, not the global batch size that the script computes from it"
        else:
            yield node, f"`{where}` gets the per-replica batch size {shown(size)} instead of the global one"
    for node, name, steps in trace.steps:
        if batches.grows(trace) and not steps.product and batches.is_one_replica(trace, Number(None, steps.per)):
            yield (
                node,
                f"`{name}` counts batches of {shown(Number(None, steps.per))}, but a step takes the global batch",
            )


def _judge_fixed(trace: Trace) -> Hits:
    for strategy, node, size, where in divided_batches(trace):
        if batches.has_workers(strategy) and size.growth == WORKERS:
            yield node, f"`{where}` gets a size that counts the workers, and not the devices of each"
        stated = batches.is_per_replica(size) or batches.is_global(size)
        if stated or count_names(size) or size.keys & (trace.scaled | trace.divided):
            continue
        if literal(size) is not None:
            yield node, f"`{where}` gets a fixed size of {size.value:g} for any number of replicas"
        elif size.given:
            yield node, f"`{where}` gets {shown(size)} as it is, for any number of replicas"


RULE = Rule(id="lint.per-replica-batch", code="KD201", severity=Severity.WARNING, judge=_judge)
FIXED = Rule(id="lint.fixed-batch", code="KD203", severity=Severity.INFO, judge=_judge_fixed, once=True)
