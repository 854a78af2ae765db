from kdoctor_lint.flow.values import Dataset
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import has_workers, splits, trained_datasets

_NO_FILES = (".from_tensor_slices", ".from_tensors", ".from_generator", ".range")


def _judge_order(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        if data.frozen is not None and splits(strategy):
            yield data.frozen, "`cache` after `shuffle` keeps the order of the first epoch"


def _judge_prefetch(trace: Trace) -> Hits:
    for event in trace.fitted:
        data = event.data if splits(event.home) else None
        if isinstance(data, Dataset) and data.node is not None and not (data.prefetched or data.in_memory):
            yield data.node, "dataset is batched but not prefetched"


def _judge_remainder(trace: Trace) -> Hits:
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


def _judge_shards(trace: Trace) -> Hits:
    for node, made_for in trace.unsharded:
        if has_workers(made_for):
            yield node, "function makes the same dataset on every worker, because it does not use its context"
    for strategy, data in trained_datasets(trace):
        if not has_workers(strategy) or data.node is None:
            continue
        if data.policy == "OFF" and data.source and not data.sharded and not data.shuffled:
            yield data.node, "every worker reads all examples in the same order, because sharding is off"
        elif data.policy == "FILE" and data.source.endswith(_NO_FILES):
            yield data.node, f"`{data.source.rpartition('.')[2]}` cannot be sharded by file"


def _judge_generators(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        whole = data.source.endswith(".from_generator") and data.policy in {"", "AUTO", "DATA"} and not data.sharded
        if has_workers(strategy) and data.node is not None and whole:
            yield data.node, "every worker runs the whole generator"


ORDER = Rule(id="lint.cache-after-shuffle", code="KD207", severity=Severity.WARNING, judge=_judge_order)
PREFETCH = Rule(id="lint.no-prefetch", code="KD204", severity=Severity.INFO, judge=_judge_prefetch)
REMAINDER = Rule(id="lint.no-drop-remainder", code="KD202", severity=Severity.INFO, judge=_judge_remainder)
SHARDS = Rule(id="lint.unsharded-data", code="KD307", severity=Severity.WARNING, judge=_judge_shards)
GENERATOR = Rule(id="lint.generator-on-every-worker", code="KD308", severity=Severity.INFO, judge=_judge_generators)
