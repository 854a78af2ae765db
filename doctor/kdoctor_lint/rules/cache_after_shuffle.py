from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import splits, trained_datasets


def _judge(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        if data.frozen is not None and splits(strategy):
            yield data.frozen, "`cache` after `shuffle` keeps the order of the first epoch"


RULE = Rule(
    id="lint.cache-after-shuffle",
    code="KD207",
    severity=Severity.WARNING,
    sources=("https://www.tensorflow.org/guide/data_performance", MEASURED),
    judge=_judge,
)
