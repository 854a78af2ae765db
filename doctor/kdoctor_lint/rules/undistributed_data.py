from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import SOME, SYNCHRONOUS


def _judge(trace: Trace) -> Hits:
    for node, strategy in trace.undistributed:
        if strategy.kinds <= SYNCHRONOUS | SOME:
            yield node, "every replica gets the whole batch, because the dataset is not distributed"


RULE = Rule(
    id="lint.undistributed-data",
    code="KD209",
    severity=Severity.WARNING,
    title="Checks for batches that `strategy.run` passes to every replica as a whole.",
    fix="Loop over `strategy.experimental_distribute_dataset(dataset)`.",
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training",),
    judge=_judge,
)
