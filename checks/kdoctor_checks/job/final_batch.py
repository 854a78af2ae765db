"""The final batch does no harm to BatchNormalization."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.job._job import SCENARIO, change, data_of, model_of, replicas_of, starves


@check("job.final-batch", severity=Severity.ERROR, requires=["job.data-readable"], scenario=SCENARIO)
def final_batch(run: SmokeRun) -> Iterator[Outcome]:
    """The final batch does no harm to BatchNormalization.

    Why: a batch of n is cut over R replicas in chunks of ceil(n / R); a replica that gets nothing of the final one
    computes moments of nothing, and the weights turn to NaN without an error (docs/smoke.md).
    Remedy: batch with drop_remainder=True, set synchronized=True on BatchNormalization, or repeat() with
    steps_per_epoch.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    data, model, replicas = data_of(run), model_of(run), replicas_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif isinstance(model, Unjudged):
        yield model
    elif data.full_batches_only:
        yield Evidence(subject="final batch", observed="every batch is full")
    elif data.endless:
        yield Evidence(subject="final batch", observed="there is none: the data does not end")
    elif not model.normalisations:
        yield Evidence(
            subject="final batch", observed=f"{data.final_batch or 'not known'}; no layer would mind an empty replica"
        )
    elif data.final_batch is None or replicas is None:
        yield Unjudged(
            subject="final batch", reason="its size is not known: the data is too long to count, or says nothing of it"
        )
    elif not starves(data.final_batch, replicas):
        yield Evidence(subject="final batch", observed=f"{data.final_batch} examples feed all of {replicas} replicas")
    else:
        yield change(
            "final batch",
            f"{data.final_batch} examples over {replicas} replicas leave one empty, and {some(model.normalisations)} "
            "normalises what each replica gets",
            "every replica gets an example, or the remainder is dropped",
            "Batch with drop_remainder=True; or BatchNormalization(synchronized=True); or dataset.repeat() with "
            "fit(steps_per_epoch=...).",
        )
