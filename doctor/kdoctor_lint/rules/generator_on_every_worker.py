from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import has_workers, trained_datasets


def _judge(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        whole = data.source.endswith(".from_generator") and data.policy in {"", "AUTO", "DATA"} and not data.sharded
        if has_workers(strategy) and data.node is not None and whole:
            yield data.node, "every worker runs the whole generator"


RULE = Rule(id="lint.generator-on-every-worker", code="KD308", severity=Severity.INFO, judge=_judge)
