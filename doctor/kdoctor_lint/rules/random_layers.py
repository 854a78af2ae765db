from kdoctor.defects import defect
from kdoctor.text.lists import counted
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED
from kdoctor_lint.rules._keras_features import OLDEST, SOURCE_FROM_OLDEST, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    layers = [one for one in trace.random if one.place is Place.INSIDE and is_mirrored(one.strategy, MIRRORED)]
    if layers:
        first, *others = {id(one.node): one for one in layers}.values()
        more = f" and {counted(len(others), 'other layer')} draw" if others else " draws"
        yield first.node, f"`{first.random}`{more} the same random numbers on every replica{releases(trace, OLDEST)}"


RULE = Rule(
    id="lint.random-layers",
    code="KD504",
    severity=Severity.WARNING,
    sources=(*defect("smoke.random-layers").source, SOURCE_FROM_OLDEST),
    judge=_judge,
)
