from kdoctor_lint.flow.values import Metric, Place
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import compiled_inside, used_inside


def _judge(trace: Trace) -> Hits:
    metrics = [metric for event in compiled_inside(trace) for metric in event.metrics]
    for metric in (*metrics, *used_inside(trace, Metric)):
        if metric.place is Place.OUTSIDE:
            yield metric.node, "metric is created outside `strategy.scope()` but used inside it"


RULE = Rule(id="lint.metrics-outside-scope", code="KD104", severity=Severity.WARNING, judge=_judge)
