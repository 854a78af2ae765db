"""Makes the checks that ask each GPU one question about its readings."""

from collections.abc import Callable, Iterator, Sequence

from kdoctor.check import Check, check, text_of
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import READ_ONLY, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings


def gpu_flag(
    id: str,  # noqa: A002 - always passed by position
    *fields: str,
    severity: Severity,
    expected: str | Callable[[Gpu], str],
    remedy: Callable[[Sequence[Gpu], Gpus], Remedy],
    bad: Callable[[Gpu], object] | None = None,
    rollback: Rollback | Callable[[Sequence[Gpu], Gpus], Rollback] = READ_ONLY,
    alike: Callable[[Gpu], object] = bool,
    brief: Callable[[Gpu], str] = lambda _: "",
    explained_by: Callable[[Gpu], tuple[str, ...]] = lambda _: (),
    requires: Sequence[str] = DRIVER,
    newer: bool = False,
) -> Callable[[Callable[[Gpu], str]], Check]:
    """Make a check from a function that describes one GPU, and has a docstring as for ``check``.

    ``fields`` are the readings that it needs, which supported drivers may lack if it is ``newer`` (see ``readings``).
    A GPU is ``bad`` if its first reading is true, unless the function is given. Bad GPUs with the same value of
    ``alike`` are fixed together: ``remedy`` and ``rollback`` get them, and all GPUs.
    """

    def make(describe: Callable[[Gpu], str]) -> Check:
        is_bad = bad or (lambda gpu: getattr(gpu, fields[0]))

        def judge_all(gpus: Gpus) -> Iterator[Outcome]:
            judged, others = readings(gpus, *fields, newer=newer)
            yield from others
            found = [gpu for gpu in judged if is_bad(gpu)]
            for gpu in judged:
                group = [other for other in found if alike(other) == alike(gpu)]
                yield judge(
                    gpu.subject,
                    describe(gpu),
                    ok=gpu not in found,
                    expected=expected if isinstance(expected, str) else expected(gpu),
                    remedy=remedy(group, gpus),
                    rollback=rollback if isinstance(rollback, Rollback) else rollback(group, gpus),
                    brief=brief(gpu),
                    explained_by=explained_by(gpu),
                )

        text = text_of(id, describe)
        return check(id, severity=severity, needs_gpus=True, requires=requires, text=text)(judge_all)

    return make
