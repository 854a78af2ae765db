from kdoctor_lint.flow.trace import has_several
from kdoctor_lint.flow.values import PerExample
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import is_one_replica, shown


def _judge(trace: Trace) -> Hits:
    for averaged, strategy in trace.averaged:
        size = averaged.size
        if not has_several(strategy) or (size is not None and not is_one_replica(trace, size)):
            continue
        if size is not None:
            yield averaged.node, f"loss is divided by {shown(size)} instead of the global batch size"
        elif isinstance(averaged, PerExample):
            yield (
                averaged.node,
                "loss of each example is not divided by the global batch size, but gradients are summed",
            )
        else:
            what = averaged.what or "loss is the mean over one replica's batch"
            verb = "are not divided by the number of replicas" if averaged.what else ""
            yield averaged.node, f"{what} {verb}".rstrip() + ", but gradients are summed over replicas"
    for node, reduced_by in trace.reduced:
        if has_several(reduced_by):
            yield node, "losses that are divided by the number of replicas are averaged, so the result is too small"


RULE = Rule(
    id="lint.loss-not-scaled",
    code="KD206",
    severity=Severity.WARNING,
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training", MEASURED),
    judge=_judge,
)
