from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.shell import set_variable
from kdoctor.facts import Environment, KerasChoice, Unavailable
from kdoctor.model import UNSET, Assumptions, Evidence, NotApplicable, Outcome, Rollback, Severity, Unjudged
from kdoctor.text.secrets import MASK
from kdoctor_checks._expected import other_value
from kdoctor_checks.environment._flags import KERAS, judge_flag, judge_setting


@check("environment.variables-expected", severity=Severity.ERROR, judges=("environment", "flags"))
def variables_expected(
    environment: Environment, keras: KerasChoice | Unavailable, assumptions: Assumptions
) -> Iterator[Outcome]:
    """Environment variables and configuration flags have the values in the checklist.

    Why: environment variables and flags change the behavior of TensorFlow, XLA, CUDA and NCCL without a code change:
    memory growth, peer access, determinism, TF32, the float type of Keras. A job that was tested with other values is a
    different job.
    Remedy: set the variable in the script or unit that starts the job, or the setting in keras.json.
    Sources:
        https://www.tensorflow.org/guide/gpu
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
        https://openxla.org/xla/flags_guidance
        https://keras.io/api/utils/config_utils/
    """
    if not (assumptions.environment or assumptions.flags):
        yield NotApplicable(reason="the checklist names no variables or flags")
    for name, wanted in assumptions.environment.items():
        yield _judge(name, wanted, environment)
    for name, wanted in assumptions.flags.items():
        if name.startswith(KERAS):
            yield judge_setting(name, wanted, keras)
        else:
            yield judge_flag(name, wanted, environment)


def _judge(name: str, wanted: str, environment: Environment) -> Outcome:
    value = environment.variables.get(name)
    if value is None and environment.is_unset(name) is None:
        return Unjudged(subject=name, reason="kdoctor does not read it, because it is not on the allow-list")
    is_masked = value is not None and MASK in value
    if is_masked and wanted != UNSET:
        return Unjudged(subject=name, reason="its value has a secret and is masked")
    if value == wanted or (value is None and wanted == UNSET):
        return Evidence(subject=name, observed=UNSET if value is None else f"{value!r}")
    commands = (set_variable(name, None if wanted == UNSET else wanted), set_variable(name, value))
    finding = other_value(
        name, UNSET if value is None else f"{value!r}", UNSET if wanted == UNSET else f"{wanted!r}", commands
    )
    masked = Rollback.irreversible("not possible (the recorded value has a secret and is masked)")
    return replace(finding, rollback=masked) if is_masked else finding
