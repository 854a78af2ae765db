from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import has_workers, trained_datasets

_NO_FILES = (".from_tensor_slices", ".from_tensors", ".from_generator", ".range")


def _judge(trace: Trace) -> Hits:
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


RULE = Rule(
    id="lint.unsharded-data",
    code="KD307",
    severity=Severity.WARNING,
    sources=("https://www.tensorflow.org/tutorials/distribute/input", MEASURED),
    judge=_judge,
)
GENERATOR = Rule(id="lint.generator-on-every-worker", code="KD308", severity=Severity.INFO, judge=_judge_generators)
