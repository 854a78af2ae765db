from collections.abc import Iterator

from kdoctor_lint.flow.values import Number, Optimizer
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import count_names, grows, shown, splits

_SCHEDULES = frozenset({"LearningRateScheduler", "ReduceLROnPlateau"})


def _judge(trace: Trace) -> Hits:
    if trace.callbacks & _SCHEDULES or not grows(trace):
        return
    for optimizer in _trained(trace):
        rate = optimizer.attributes.get("learning_rate", optimizer.rate)
        constant = isinstance(rate, Number) and not rate.scaled and not (rate.product and count_names(rate))
        if isinstance(rate, Number) and constant and (rate.names or rate.value is not None):
            stays = shown(rate) if rate.value is None else format(rate.value, "g")
            yield optimizer.node, f"learning rate stays {stays} while the batch size grows with the number of replicas"


def _trained(trace: Trace) -> Iterator[Optimizer]:
    """Optimizers that train on several replicas."""
    for event in trace.compiled:
        if event.optimizer is not None and splits(event.home):
            yield event.optimizer
    for made, strategy in trace.used:
        if isinstance(made, Optimizer) and splits(strategy):
            yield made


RULE = Rule(id="lint.unscaled-learning-rate", code="KD205", severity=Severity.INFO, judge=_judge)
