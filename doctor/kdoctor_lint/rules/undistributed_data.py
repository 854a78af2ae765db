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
    why="""`strategy.run` gives each replica its part of a batch only if the batch is from a distributed dataset. Other
tensors are passed to all of them. Every replica then computes the same gradients, so several GPUs are as slow as
one, and their sum is as many times too large as there are replicas.""",
    fix="Loop over `strategy.experimental_distribute_dataset(dataset)`.",
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training",),
    judge=_judge,
)
