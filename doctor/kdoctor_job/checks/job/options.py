from collections.abc import Iterator

from kdoctor.defects import defect
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_job.checks.job._options import STATE, Judged, judge_measured, option_of, used_options
from kdoctor_job.checks.job._user_model import job_check, job_of
from kdoctor_job.facts import JobModel

_ELSEWHERE = ("clipping", "steps_per_execution", "masks")
"""Options with a separate check."""
_BUILT_LATE, _GRADIENTS, _NO_CALL = "optimizer built late", "changed gradients", "model without call"
_SPARSE = "sparse gradients"
_NAMED = (STATE, _GRADIENTS, _SPARSE)
"""Options whose value names what the job has of it."""
_UNSET = {_NO_CALL: "a model without call()", _BUILT_LATE: "an optimizer that the first train_step builds"}
"""What no argument sets, and how the job uses it."""
_REMEDIES: dict[str, Remedy | str] = {
    "jit_compile": 'Leave jit_compile at its default, "auto", which turns XLA off on several replicas.',
    "gradient_accumulation_steps": "Remove gradient_accumulation_steps and use more replicas instead, or train on JAX.",
    "loss scaling": "Compile without a LossScaleOptimizer, and train with mixed_bfloat16 instead of mixed_float16.",
    "use_ema": "Leave out ema_overwrite_frequency, so that fit writes the averages to the weights at its end.",
    "weight_decay": "Remove weight_decay, and use kernel_regularizer=keras.regularizers.L2(...) instead.",
    "run_eagerly": "Compile with run_eagerly=False.",
    "added losses": defect("smoke.synchronized-added-loss").fix,
    "loss objects of layers": defect("smoke.loss-object-in-layer").fix,
    _SPARSE: defect("smoke.position-embedding").fix,
    _GRADIENTS: Remedy.configure(
        "Change the sum over all replicas: in the update_step of your optimizer, which gets it, or in train_step what "
        "all_reduce returns, divided by their number.",
        look=("kdoctor explain --reproduce clipping",),
    ),
    STATE: (
        "Assign these variables what all replicas agree on: sums that tf.distribute.get_replica_context().all_reduce "
        "returns, or what you compute from all that its all_gather returns."
    ),
    _NO_CALL: "Define call in the model, such as the call of its main network.",
    _BUILT_LATE: "Call optimizer.build(model.trainable_variables) in strategy.scope(), before fit.",
}


@job_check("job.options", Severity.ERROR, "job.trains", several=True)
def options(run: SmokeRun, model: JobModel) -> Iterator[Outcome]:
    """The job's options of compile and of its optimizer work on several replicas.

    Why: some options of compile, optimizers and layers, and what your own code does with gradients and variables, are
    correct on one device only. Some releases of Keras raise an error, and others train incorrectly. kdoctor trains the
    job as it is. If that fails or differs from one device, it trains without each of these, to find the cause.
    Remedy: remove the option that the finding names; the job trains correctly without it on this machine.
    Source: https://keras.io/api/models/model_training_apis/
    """
    training = job_of(run).training
    tried = {one.name for one in training.options} if training else set()
    given = used_options(run, model)
    used = {name: value for name, value in (given or {}).items() if name not in _ELSEWHERE}
    used.update({name: how for name, how in _UNSET.items() if name in tried})
    used.update({one.name: one.value for one in (training.options if training else ()) if one.name in _NAMED})
    if not model.compiled:
        yield NotApplicable(reason="the model is not compiled")
    elif given is None:
        yield unknown("options", "the options were not read")
    elif not used:
        yield evidence("options", "none that Keras implements separately for several replicas")
    else:
        for name, value in used.items():
            measured = option_of(run, name)
            fails = measured and measured.problem
            wrong = "fit refuses it" if name == _NO_CALL else "fails" if fails else "trains incorrectly"
            brief = f"{wrong} on several replicas"
            # Keras may build it incorrectly within the first step on one device, too.
            brief = "replicas and one device train differently" if name == _BUILT_LATE and not fails else brief
            subject = f"{name} ({value})" if name in _NAMED else name
            judged = Judged(subject, "trains as on one device", _REMEDIES.get(name, f"Remove {name}."), brief)
            yield judge_measured(run, name, value, judged) or unknown(
                name, "the job with this option was not compared with one device", ("job.equals-one-device",)
            )
