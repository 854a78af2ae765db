from collections.abc import Iterator

from kdoctor_lint.flow.values import TWICE, Number, Optimizer
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import count_names, divided_batches, grows, shown, splits


def _judge(trace: Trace) -> Hits:
    if "LearningRateScheduler" in trace.callbacks:
        return
    larger = grows(trace)
    fixed = [size.value for *_, size, _ in divided_batches(trace) if size.value is not None and not larger]
    for optimizer in _trained(trace):
        rate = optimizer.attributes.get("learning_rate", optimizer.rate)
        if not isinstance(rate, Number):
            continue
        scaled = rate.scaled or (rate.product and count_names(rate))
        if rate.growth & TWICE:
            yield optimizer.node, "learning rate is multiplied by the number of replicas twice"
        elif scaled and fixed:
            yield (
                optimizer.node,
                f"learning rate grows with the number of replicas, but the batch size stays {fixed[0]:g}",
            )
        elif larger and not scaled and (rate.names or rate.value is not None):
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
