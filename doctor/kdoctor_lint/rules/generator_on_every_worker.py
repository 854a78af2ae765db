from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import has_workers, trained_datasets


def _judge(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        whole = data.source.endswith(".from_generator") and data.policy in {"", "AUTO", "DATA"} and not data.sharded
        if has_workers(strategy) and data.node is not None and whole:
            yield data.node, "every worker runs the whole generator"


RULE = Rule(
    id="lint.generator-on-every-worker",
    code="KD308",
    severity=Severity.INFO,
    title="Checks for Python generators as the data of several workers.",
    fix="Read files with `tf.data`, or let each worker generate only its part and set `AutoShardPolicy.OFF`.",
    sources=("https://www.tensorflow.org/tutorials/distribute/input",),
    judge=_judge,
)
