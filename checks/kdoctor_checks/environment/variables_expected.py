"""Whether the environment variables are as the checklist wants them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment
from kdoctor.model import (
    UNSET,
    Action,
    Assumptions,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Unjudged,
)


@check("environment.variables-expected", severity=Severity.ERROR, judges=("environment",))
def variables_expected(environment: Environment, assumptions: Assumptions) -> Iterator[Outcome]:
    """The environment variables that the checklist names have the values that it names.

    Why: such variables change what TensorFlow, CUDA and NCCL do without a change of the code: memory growth, peer
    access, determinism. A job that was tested with them is another job without them.
    Remedy: set the variable in the script or the unit that starts the job.
    Sources:
        https://www.tensorflow.org/guide/gpu
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if not assumptions.environment:
        yield NotApplicable(reason="the checklist names no variables")
    for name, wanted in assumptions.environment.items():
        yield _judge(name, wanted, environment)


def _judge(name: str, wanted: str, environment: Environment) -> Outcome:
    value = environment.get(name)
    if value is None and environment.is_unset(name) is None:
        return Unjudged(subject=name, reason="kdoctor does not read it: it is not on the allow-list")
    if value == wanted or (value is None and wanted == UNSET):
        return Evidence(subject=name, observed=UNSET if value is None else f"{value!r}")
    return Finding(
        subject=name,
        observed=UNSET if value is None else f"{value!r}",
        expected=UNSET if wanted == UNSET else f"{wanted!r}",
        remedy=Remedy(
            summary="Set it in the script or the unit that starts the job.",
            action=Action.CONFIGURE,
            commands=(_command(name, None if wanted == UNSET else wanted),),
        ),
        rollback=Rollback.to("the recorded value", _command(name, value)),
    )


def _command(name: str, value: str | None) -> str:
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
