from kdoctor_lint.flow.values import Number
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import count_names, divided_batches, grows, is_one_replica, shown


def _judge(trace: Trace) -> Hits:
    for strategy, node, size, where in divided_batches(trace):
        if count_names(size) or not is_one_replica(trace, size, strategy):
            continue
        if size.scaled:
            yield node, f"`{where}` gets a size for the devices of one worker, not for all workers"
        elif size.keys & trace.scaled:
            yield node, f"`{where}` gets {shown(size)}, not the global batch size that the script computes from it"
        else:
            yield node, f"`{where}` gets the per-replica batch size {shown(size)} instead of the global one"
    for node, name, steps in trace.steps:
        if grows(trace) and not steps.product and is_one_replica(trace, Number(None, steps.per)):
            yield (
                node,
                f"`{name}` counts batches of {shown(Number(None, steps.per))}, but a step takes the global batch",
            )


RULE = Rule(id="lint.per-replica-batch", code="KD201", severity=Severity.WARNING, judge=_judge)
