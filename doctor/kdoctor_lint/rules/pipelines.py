from kdoctor_lint.flow.values import Dataset
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import splits, trained_datasets


def _judge_order(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        if data.frozen is not None and splits(strategy):
            yield data.frozen, "`cache` after `shuffle` keeps the order of the first epoch"


def _judge_prefetch(trace: Trace) -> Hits:
    for event in trace.fitted:
        data = event.data if splits(event.home) else None
        if isinstance(data, Dataset) and data.node is not None and not (data.prefetched or data.in_memory):
            yield data.node, "dataset is batched but not prefetched"


ORDER = Rule(
    id="lint.cache-after-shuffle",
    code="KD207",
    severity=Severity.WARNING,
    sources=("https://www.tensorflow.org/guide/data_performance", MEASURED),
    judge=_judge_order,
)
PREFETCH = Rule(id="lint.no-prefetch", code="KD204", severity=Severity.INFO, judge=_judge_prefetch)
