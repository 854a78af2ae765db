from collections.abc import Iterator
from functools import partial
from typing import TypeVar

from kdoctor_lint.flow.trace import Compiled, Fitted, Trace, has_several
from kdoctor_lint.flow.values import Made, Metric, Model, Optimizer, Place, Strategy
from kdoctor_lint.model import Hits, Rule, Severity

M = TypeVar("M", bound=Made)


def _stray_models(trace: Trace) -> Iterator[tuple[Model, str]]:
    """Models created outside every scope that a strategy trains or should train, and how a message goes on."""
    events: list[Compiled | Fitted] = [*trace.compiled, *trace.fitted]
    for event in events:
        inside = event.place is Place.INSIDE and has_several(event.strategy)
        if event.model is not None and event.model.place is Place.OUTSIDE and inside:
            yield event.model, f"but {'compiled' if isinstance(event, Compiled) else 'trained'} inside it"
    for model in _used(trace, Model):
        yield model, "but used inside it"
    unaffected = all(item.place is Place.OUTSIDE for item in (*trace.models, *events))
    unused = all(has_several(strategy) and not strategy.escaped for strategy in trace.strategies)
    if trace.strategies and unaffected and unused and not trace.unclear:
        for event in trace.fitted:
            if event.model is not None and event.model.place is Place.OUTSIDE:
                yield event.model, "and trained without the strategy"


def _differ(one: Strategy | None, other: Strategy | None) -> bool:
    """Whether two strategies with several replicas are certainly not the same object."""
    known = one is not None and other is not None and not one.joined and not other.joined
    return known and one is not other and has_several(one) and has_several(other)


def _used(trace: Trace, kind: type[M]) -> Iterator[M]:
    """Objects created outside and used by a step that runs on every replica."""
    for made, strategy in trace.used:
        if isinstance(made, kind) and made.place is Place.OUTSIDE and has_several(strategy):
            yield made


def _judge_models(trace: Trace, *, loaded: bool) -> Hits:
    for model, use in _stray_models(trace):
        if model.loaded is loaded:
            yield model.node, f"model is {'loaded' if loaded else 'created'} outside `strategy.scope()` {use}"


def _judge_compile(trace: Trace) -> Hits:
    trained = {id(event.compiled) for event in trace.fitted}
    evaluated = {id(event) for event in trace.evaluated} - trained
    for event in [] if trace.legacy else trace.compiled:
        model = event.model
        stays = model is not None and model.place is Place.INSIDE and has_several(model.strategy)
        if model is None or not stays or id(event) in evaluated:
            continue
        if event.place is Place.OUTSIDE and event.mixes:
            yield event.node, "model is created inside `strategy.scope()` but compiled outside it"
        elif event.place is Place.INSIDE and _differ(model.strategy, event.strategy):
            yield event.node, "model is created in the scope of another strategy than it is compiled in"


def _judge_others(trace: Trace, *, kind: type[Made], what: str) -> Hits:
    for used in _used(trace, kind):
        yield used.node, f"{what} is created outside `strategy.scope()` but used inside it"
    for event in trace.compiled:
        # Where the model was created outside, that is the finding, and moving it fixes the rest.
        elsewhere = event.model is not None and event.model.place is Place.OUTSIDE
        if event.place is not Place.INSIDE or not has_several(event.strategy) or elsewhere:
            continue
        for made in (event.optimizer, *event.metrics):
            if isinstance(made, kind) and made.place is Place.OUTSIDE:
                yield made.node, f"{what} is created outside `strategy.scope()` but used inside it"
            elif isinstance(made, kind) and made.place is Place.INSIDE and _differ(made.strategy, event.strategy):
                yield made.node, f"{what} is created in the scope of another strategy than it is used in"


MODEL = Rule(
    id="lint.model-outside-scope", code="KD101", severity=Severity.ERROR, judge=partial(_judge_models, loaded=False)
)
LOADED = Rule(
    id="lint.load-model-outside-scope", code="KD105", severity=Severity.ERROR, judge=partial(_judge_models, loaded=True)
)
COMPILE = Rule(id="lint.compile-outside-scope", code="KD102", severity=Severity.ERROR, judge=_judge_compile)
OPTIMIZER = Rule(
    id="lint.optimizer-outside-scope",
    code="KD103",
    severity=Severity.ERROR,
    judge=partial(_judge_others, kind=Optimizer, what="optimizer"),
)
METRICS = Rule(
    id="lint.metrics-outside-scope",
    code="KD104",
    severity=Severity.INFO,
    judge=partial(_judge_others, kind=Metric, what="metric"),
    once=True,
)
