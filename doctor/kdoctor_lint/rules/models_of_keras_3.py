import ast
from functools import partial

from kdoctor.text.lists import counted
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED, SINGLE
from kdoctor_lint.rules import _keras_features as keras_3


@keras_3.on_keras_3
def _fit(trace: Trace, *, kind: str, where: str = "", chosen: bool = False) -> Hits:
    """Calls of ``fit`` that a strategy of this kind trains, or may train, if the script chooses one of several."""
    for event in trace.fitted:
        kinds = event.home.kinds - SINGLE if event.home else ()
        if kind in kinds and chosen is (len(kinds) > 1):
            yield event.node, f"`fit` of Keras 3 fails {where}under {kind}"


fit_of_workers = partial(_fit, kind="MultiWorkerMirroredStrategy", where="on several workers ")
_fit_of_servers = partial(_fit, kind="ParameterServerStrategy")


@keras_3.on_keras_3
def _strings(trace: Trace) -> Hits:
    for event in trace.fitted:
        if event.model is not None and event.model.strings is not None and keras_3.is_mirrored(event.home):
            yield event.model.strings, "`fit` of Keras 3 fails with an input of strings on several replicas"


@keras_3.on_keras_3
def _unseeded(trace: Trace) -> Hits:
    for node, name, strategy in trace.unseeded:
        if keras_3.is_mirrored(strategy):
            yield node, f"`{name}` without a seed fails on several replicas"


@keras_3.on_keras_3
def _on_batch(trace: Trace) -> Hits:
    for node, name, model in trace.on_batch:
        if model.place is Place.INSIDE and keras_3.is_mirrored(model.strategy):
            wrong = "returns its predictions" if name == "predict_on_batch" else "computes the whole batch"
            yield node, f"`{name}` {wrong} once for each replica{keras_3.releases(trace)}"


@keras_3.on_keras_3
def _built_late(trace: Trace) -> Hits:
    for made, strategy in trace.built_late:
        if made.slots and made.place is Place.INSIDE and keras_3.is_mirrored(strategy):
            late = f"`{made.algorithm or 'Optimizer'}` creates its variables in the first step, inside `tf.function`"
            yield made.node, f"{late}, and fails{keras_3.releases(trace)}"


@keras_3.on_keras_3
def _random(trace: Trace) -> Hits:
    layers = [one for one in trace.random if one.place is Place.INSIDE and keras_3.is_mirrored(one.strategy, MIRRORED)]
    if layers and (trace.fitted or (trace.trains if trace.applying else not trace.evaluated)):
        first, *others = {id(one.node): one for one in layers}.values()
        more = f" and {counted(len(others), 'other layer')} draw" if others else " draws"
        releases = keras_3.releases(trace, keras_3.OLDEST)
        where = "" if first.random in ast.unparse(first.node) else " in it"  # a function or class makes the layer
        yield first.node, f"`{first.random}`{where}{more} the same random numbers on every replica{releases}"


@keras_3.on_keras_3
def _divided_twice(trace: Trace) -> Hits:
    for node, divided, strategy in trace.added:
        if divided and keras_3.is_mirrored(strategy):
            yield node, "`add_loss` gets what a loss object returns, so it is divided by the number of replicas twice"


@keras_3.on_keras_3
def _mixed_up(trace: Trace) -> Hits:
    for node, _, strategy in trace.added:
        if keras_3.is_mirrored(strategy) and any(strategy is other for other in trace.synchronized):
            yield node, "what a layer adds to the loss is mixed up between replicas by synchronized BatchNormalization"


WORKERS = Rule(id="lint.multi-worker-fit", code="KD511", severity=Severity.WARNING, judge=fit_of_workers)
SERVERS = Rule(id="lint.parameter-server-fit", code="KD508", severity=Severity.ERROR, judge=_fit_of_servers)
STRINGS = Rule(id="lint.string-input", code="KD510", severity=Severity.ERROR, judge=_strings)
UNSEEDED = Rule(id="lint.unseeded-random", code="KD514", severity=Severity.ERROR, judge=_unseeded)
ON_BATCH = Rule(id="lint.predict-on-batch", code="KD506", severity=Severity.WARNING, judge=_on_batch)
BUILT_LATE = Rule(id="lint.optimizer-built-late", code="KD503", severity=Severity.ERROR, judge=_built_late)
RANDOM = Rule(id="lint.random-layers", code="KD504", severity=Severity.WARNING, judge=_random)
LOSS_OBJECT = Rule(id="lint.loss-object-in-layer", code="KD512", severity=Severity.WARNING, judge=_divided_twice)
SYNCHRONIZED = Rule(id="lint.synchronized-added-loss", code="KD513", severity=Severity.WARNING, judge=_mixed_up)
