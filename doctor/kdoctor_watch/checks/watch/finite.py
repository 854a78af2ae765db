from collections.abc import Iterable, Iterator

from kdoctor.check import check
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_watch.facts import NotFinite, Watched

_REMEDY = Remedy.change_code(
    "Examine the batch of that step. Start again from before it, with a lower learning rate or clipped gradients.",
    look=("kdoctor explain nan_loss",),
)
_ROLLBACK = Rollback.irreversible("training steps cannot be undone: use an earlier checkpoint")
_KINDS = {"log": "", "gradient": "gradient of ", "variable": "variable "}


@check("watch.finite", severity=Severity.ERROR)
def finite(watched: Watched) -> Iterator[Outcome]:
    """Losses, metrics, gradients and variables stay finite.

    Why: a NaN in the loss or in a gradient reaches all variables with the next update. The rest of the run is lost, and
    so is each checkpoint that is written after it. Keras reports the mean over the epoch, so that the first step with a
    NaN is not visible afterwards. A gradient that is not finite makes its variable so in the same step; ``fit`` shows
    no gradients, so that only variables are read there, each time the replicas are compared.
    Remedy: start again from before the first such step. Lower the learning rate, clip gradients, look at the
    batch of that step, and use a loss scale with float16.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/debugging/enable_check_numerics
        https://www.tensorflow.org/guide/mixed_precision#loss_scaling
    """
    values = watched.values
    for subject, observed in _problems(values.not_finite):
        yield Finding(
            subject=subject,
            observed=observed,
            brief="is not finite",
            expected="finite values in each step",
            remedy=_REMEDY,
            rollback=_ROLLBACK,
        )
    if values.not_finite:
        return
    if not values.steps and not values.variables:
        yield Unjudged(subject="values", reason="no value of a training step was read")
        return
    parts = [f"{some(values.logs)} in {counted(values.steps, 'step')}"] if values.logs else []
    parts += [f"gradients in {counted(values.gradients, 'step')}"] if values.gradients else []
    parts += [counted(values.variables, "variable")] if values.variables else []
    yield Evidence(subject="values", observed=f"finite: {', '.join(parts)}", brief="values finite")


def _problems(found: Iterable[NotFinite]) -> Iterator[tuple[str, str]]:
    """Subjects and what was seen. Variables that were found in one look are one subject."""
    looks: dict[int, list[NotFinite]] = {}
    for bad in found:
        if bad.kind == "variable":
            looks.setdefault(bad.step, []).append(bad)
        else:
            yield f"{_KINDS[bad.kind]}{bad.name}", _describe(bad)
    for step, together in looks.items():
        if len(together) == 1:
            yield f"{_KINDS['variable']}{together[0].name}", _describe(together[0])
        else:
            listed = f"{counted(len(together), 'variable')}: {some([bad.name for bad in together])}"
            yield (f"variables after step {step}", f"{listed}: {_describe(together[0])}")


def _describe(bad: NotFinite) -> str:
    since = "never finite before" if bad.finite_at is None else f"last finite after step {bad.finite_at}"
    where = f" on replica {bad.replica}" if bad.replica is not None else ""
    return f"NaN or infinite{where} after step {bad.step} ({since})"
