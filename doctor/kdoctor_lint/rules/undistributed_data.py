from functools import partial

from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.names import SOME, SYNCHRONOUS


def _judge(trace: Trace, *, first: bool) -> Hits:
    whole = "every replica gets the whole batch, because the dataset is not distributed"
    for node, strategy in trace.restarted if first else trace.undistributed:
        if strategy.kinds <= SYNCHRONOUS | SOME:
            yield node, "every step takes the first batch, because it makes a new iterator" if first else whole


RULE = Rule(
    id="lint.undistributed-data",
    code="KD209",
    severity=Severity.WARNING,
    title="Checks for batches that `strategy.run` passes to every replica as a whole.",
    fix="Loop over `strategy.experimental_distribute_dataset(dataset)`.",
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training",),
    judge=partial(_judge, first=False),
)
FIRST = Rule(
    id="lint.first-batch",
    code="KD210",
    severity=Severity.WARNING,
    title="Checks for custom loops that make a new iterator over the distributed data in each step.",
    fix="Call `iter` once before the loop, or loop over the dataset itself.",
    sources=("https://www.tensorflow.org/tutorials/distribute/input", MEASURED),
    judge=partial(_judge, first=True),
)
