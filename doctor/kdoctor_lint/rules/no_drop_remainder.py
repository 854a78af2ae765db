from kdoctor_lint.flow.values import Dataset
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import splits


def _judge(trace: Trace) -> Hits:
    normalized = trace.batch_normalized or (trace.normalized_application and not trace.freezes)
    if trace.legacy or not normalized:
        return
    known = [event for event in trace.fitted if event.model is not None or not trace.models]
    fitted = [event for event in known if not event.steps and not (event.model and event.model.plain)]
    limited = any(event.steps and not isinstance(event.data, Dataset) for event in known)
    distributed = [] if limited else trace.distributed
    for strategy, data in (*((event.home, event.data) for event in fitted), *distributed):
        if not splits(strategy) or not isinstance(data, Dataset) or data.node is None:
            continue
        if data.source_shown and not (data.drops or data.repeated or data.truncated):
            yield data.node, "last batch may leave a replica without examples, and the model has BatchNormalization"


RULE = Rule(
    id="lint.no-drop-remainder",
    code="KD202",
    severity=Severity.WARNING,
    sources=("https://keras.io/api/layers/normalization_layers/batch_normalization/", MEASURED),
    judge=_judge,
)
