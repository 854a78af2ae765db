from kdoctor_lint.flow.values import Dataset
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import splits


def _judge(trace: Trace) -> Hits:
    for event in trace.fitted:
        data = event.data
        if not splits(event.home) or not isinstance(data, Dataset) or data.node is None:
            continue
        if not (data.prefetched or data.in_memory):
            yield data.node, "dataset is batched but not prefetched"


RULE = Rule(id="lint.no-prefetch", code="KD204", severity=Severity.INFO, judge=_judge)
