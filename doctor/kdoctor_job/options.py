"""The options of ``kdoctor check`` that name the user's model and data."""

from pathlib import Path
from typing import Annotated

from kdoctor.cli.conflicts import refuse_with
from kdoctor.cli.help import ADVANCED
from kdoctor.cli.options import EXAMINE, check_time_limit, option
from kdoctor.errors import UsageError
from kdoctor.smoke.scenario import AddedTraining
from kdoctor_job.own_loop import loop_training
from kdoctor_job.own_model import DEFAULT_STEPS, OWN_DEADLINE_S, UserModel, in_module

ModelOption = Annotated[
    str | None,
    option(
        "Also examine your job: its script or notebook, which runs up to its fit or first step, such as "
        "'train.py --batch 64'; or, with --data, a function that returns the model, such as train.py:build.",
        metavar="SCRIPT|FUNCTION",
        panel=EXAMINE,
    ),
]
DataOption = Annotated[
    str | None,
    option(
        "Your data: a function that returns a dataset, a PyDataset, arrays or a generator, such as train.py:data.",
        metavar="MODULE:FUNCTION",
        panel=EXAMINE,
    ),
]
StepsOption = Annotated[
    int | None, option("Number of training steps for your model. \\[default: 8]", min=0, max=10_000, panel=ADVANCED)
]
StepsPerEpochOption = Annotated[
    int | None, option("`steps_per_epoch` to use for infinite datasets.", min=1, panel=ADVANCED)
]
FitArgumentsOption = Annotated[
    str | None,
    option(
        "Other arguments of your `fit`: a function that returns them in a dictionary. With --restore, it takes the "
        "folder where its callbacks save.",
        metavar="MODULE:FUNCTION",
        panel=ADVANCED,
    ),
]
FitOption = Annotated[
    int | None,
    option(
        "Which `fit` of your script to examine. Those before it train one step. \\[default: 1]",
        min=1,
        max=1000,
        panel=ADVANCED,
    ),
]
RestoreOption = Annotated[
    Path | None,
    option(
        "Also save and kill your job in a new folder inside this one, on the file system where it will save, and see "
        "whether it comes back.",
        metavar="DIR",
        panel=ADVANCED,
    ),
]
LoopOption = Annotated[
    str | None,
    option(
        "With --restore, in place of --model and --data: your own training loop. It takes the folder where it saves, "
        "goes on from what is there, and yields numbers after each step.",
        metavar="MODULE:FUNCTION",
        panel=ADVANCED,
    ),
]
WorkersOption = Annotated[
    int | None, option("Processes for --loop, each with its TF_CONFIG. \\[default: 1]", min=1, max=16, panel=ADVANCED)
]
ModelTimeoutOption = Annotated[
    float | None,
    option(
        "Time limit for your model and data, in seconds. \\[default: 600]",
        min=1,
        callback=check_time_limit,
        panel=ADVANCED,
    ),
]


def own_job(  # noqa: PLR0913 - one parameter per option
    *,
    model: ModelOption = None,
    data: DataOption = None,
    steps: StepsOption = None,
    steps_per_epoch: StepsPerEpochOption = None,
    fit_arguments: FitArgumentsOption = None,
    fit: FitOption = None,
    model_timeout: ModelTimeoutOption = None,
    restore: RestoreOption = None,
    loop: LoopOption = None,
    workers: WorkersOption = None,
) -> AddedTraining | None:
    """The training of the user's model, if the options name it (entry point ``kdoctor.options``).

    Raises:
        UsageError: a function is named for only one of model and data, a name is malformed, or there are other options
            of a model without one.
    """
    deadline_s = OWN_DEADLINE_S if model_timeout is None else model_timeout
    if loop is not None:
        refuse_with("--loop", loop, {"--model": model, "--data": data}, why="the loop makes them")
        if restore is None:
            raise UsageError("--loop requires --restore", hint="Example: --loop train:loop --restore /data/checkpoints")
        place, half = str(restore.absolute()), DEFAULT_STEPS if steps is None else steps
        return loop_training(in_module(loop), place, steps=half, workers=workers or 1, deadline_s=deadline_s)
    if workers is not None:
        raise UsageError("--workers requires --loop", hint="Example: --loop train:loop --workers 2 --restore /data")
    if model is None and data is None:
        dependent = {
            "--steps": (steps, "train.py --steps 20"),
            "--steps-per-epoch": (steps_per_epoch, "train.py --steps-per-epoch 20"),
            "--fit-arguments": (fit_arguments, "job:build --data job:read --fit-arguments job:arguments"),
            "--fit": (fit, "train.py --fit 2"),
            "--model-timeout": (model_timeout, "train.py --model-timeout 900"),
            "--restore": (restore, "job:build --data job:read --restore /data/checkpoints"),
        }
        given = [name for name, (value, _) in dependent.items() if value is not None]
        if given:
            example = f"Example: --model {dependent[given[0]][1]}"
            raise UsageError(
                f"{' and '.join(given)} {'requires' if len(given) == 1 else 'require'} --model", hint=example
            )
        return None
    if model is None or (data is None and ":" in model.partition(" ")[0]):
        of, _, name = (model or data or "").rpartition(":")
        of = of or "train.py"
        both = f"--model {model or f'{of}:build'} --data {of}:{name if data else 'data'}"
        example = f"Example: {both}, or a script alone: --model {of}"
        raise UsageError("a function of --model and --data require each other", hint=example)
    if data is not None and ".py " in f"{model} ":
        refuse_with("--model SCRIPT", model, {"--data": data}, why="A script brings its data")
    refuse_with("--data", data, {"--fit": fit}, why="It needs a script: --model train.py --fit 2")
    if data is None:
        of_functions = {"--fit-arguments": fit_arguments, "--restore": restore}
        why = "They need functions: --model job:build --data job:read"
        refuse_with("--model SCRIPT", model, of_functions, why=why)
    return UserModel(
        model=model if data is None else in_module(model),
        data=data and in_module(data),
        fit_arguments=fit_arguments and in_module(fit_arguments),
        fit=fit or 1,
        steps=DEFAULT_STEPS if steps is None else steps,
        steps_per_epoch=steps_per_epoch,
        deadline_s=deadline_s,
        restore=None if restore is None else str(restore.absolute()),
    ).training()
