from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_watch.facts import Watched

_REMEDY = Remedy.change_code(
    "Cache what is read again, map with num_parallel_calls=tf.data.AUTOTUNE, decode in advance, and prefetch."
)
_FEW = 10


@check("watch.input", severity=Severity.WARNING)
def input_pipeline(watched: Watched, *, most_share: float = 0.2) -> Iterator[Outcome]:
    """The training does not wait for its data.

    Why: replicas that wait for a batch are idle, and more GPUs do not make such a job faster. Keras reads batches
    inside the compiled step, so that the waiting is only visible at the dataset: ``watch.data(dataset)`` counts the
    batches that are ready before a step. In a custom loop, it times the iterator.
    Remedy: cache, read and map in parallel, decode in advance; find the slow part with the profiler.
    Source: https://www.tensorflow.org/guide/data_performance_analysis
    """
    seen = watched.input
    if seen.unavailable is not None:
        yield Unjudged(subject="input", reason=seen.unavailable)
        return
    if seen.waited_s is not None and seen.seconds:
        share = seen.waited_s / seen.seconds
        observed = f"{seen.waited_s:.3g} of {seen.seconds:.3g} s were spent waiting for batches ({share:.0%})"
    elif seen.looks >= _FEW:
        share = seen.empty / seen.looks
        observed = f"no batch was ready before {seen.empty} of {seen.looks} steps ({share:.0%})"
    else:
        yield Unjudged(subject="input", reason=f"only {seen.looks} of {_FEW} looks at the waiting batches")
        return
    if share <= most_share:
        yield Evidence(subject="input", observed=observed)
        return
    yield Finding(
        subject="input",
        observed=observed,
        brief="the training waits for its data",
        expected=f"at most {most_share:.0%}",
        remedy=_REMEDY,
        rollback=Rollback.nothing("not needed (kdoctor changed nothing)"),
    )
