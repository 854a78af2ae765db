from kdoctor.defects import defect
from kdoctor.text.lists import counted
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED
from kdoctor_lint.rules import _keras_features as keras_3


@keras_3.on_keras_3
def _strings(trace: Trace) -> Hits:
    for event in trace.fitted:
        if event.model is not None and event.model.strings is not None and keras_3.is_mirrored(event.home):
            yield event.model.strings, "`fit` of Keras 3 fails with an input of strings on several replicas"


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
    if layers:
        first, *others = {id(one.node): one for one in layers}.values()
        more = f" and {counted(len(others), 'other layer')} draw" if others else " draws"
        releases = keras_3.releases(trace, keras_3.OLDEST)
        yield first.node, f"`{first.random}`{more} the same random numbers on every replica{releases}"


STRINGS = Rule(
    id="lint.string-input",
    code="KD510",
    severity=Severity.ERROR,
    sources=("https://github.com/tensorflow/tensorflow/issues/80951", MEASURED),
    judge=_strings,
)
ON_BATCH = Rule(
    id="lint.predict-on-batch",
    code="KD506",
    severity=Severity.WARNING,
    sources=(*defect("smoke.predict-on-batch").source, keras_3.SOURCE),
    judge=_on_batch,
)
BUILT_LATE = Rule(
    id="lint.optimizer-built-late",
    code="KD503",
    severity=Severity.ERROR,
    sources=(*defect("smoke.optimizer-built-late").source, keras_3.SOURCE),
    judge=_built_late,
)
RANDOM = Rule(
    id="lint.random-layers",
    code="KD504",
    severity=Severity.WARNING,
    sources=(*defect("smoke.random-layers").source, keras_3.SOURCE_FROM_OLDEST),
    judge=_random,
)
