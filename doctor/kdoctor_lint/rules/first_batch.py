from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.names import SOME, SYNCHRONOUS


def _judge(trace: Trace) -> Hits:
    for node, strategy in trace.restarted:
        if strategy.kinds <= SYNCHRONOUS | SOME:
            yield node, "every step takes the first batch, because it makes a new iterator"


RULE = Rule(
    id="lint.first-batch",
    code="KD210",
    severity=Severity.WARNING,
    title="Checks for custom loops that make a new iterator over the distributed data in each step.",
    fix="Call `iter` once before the loop, or loop over the dataset itself.",
    sources=("https://www.tensorflow.org/tutorials/distribute/input", MEASURED),
    judge=_judge,
)
