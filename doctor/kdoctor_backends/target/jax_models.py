"""Models, layers, callbacks and steps of real jobs with ``keras.distribution.DataParallel`` on JAX.

Measures: see ``kdoctor_backends.target.jax_compared``; also ``metric moved while frozen`` (0), ``metric saved
weights``, the largest difference between the saved and the restored weights (0), and ``metric predictions``, the number
of predictions for one batch.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import numpy as np

from kdoctor_backends.target.jax_compared import History, JaxJob, compare, fit, sgd
from kdoctor_target.runner.case import Case
from kdoctor_target.training import seeded
from kdoctor_target.training.regression import FEATURES, Batches, dense_model

EPOCHS = 5
HALF_WAY = 0.4
"""The validation targets are this part of the targets. The training passes them, so an epoch in the middle is best."""


def compares(job: JaxJob) -> Callable[[Case], None]:
    """A case that trains this job."""

    def run(case: Case) -> None:
        compare(case, job)

    return run


def add_loss(keras: Any) -> Any:
    """A model with a layer that adds the mean square of its inputs to the loss."""

    class Penalty(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types here
        def call(self, inputs: Any) -> Any:
            self.add_loss(0.1 * keras.ops.mean(keras.ops.square(inputs)))
            return inputs

    hidden, out = dense_model(keras).layers
    return keras.Sequential([keras.Input((FEATURES,)), hidden, Penalty(), out])


def own_step(keras: Any) -> Any:
    """A model with the ``train_step`` of https://keras.io/guides/custom_train_step_in_jax/."""
    import jax

    class Model(keras.Model):  # type: ignore[misc]  # Keras has no types here
        def train_step(self, state: Any, data: Any) -> Any:
            trainable, others, of_optimizer, of_metrics = state
            inputs, targets = data[:2]

            def loss_of(trainable: Any, others: Any) -> Any:
                outputs, others = self.stateless_call(trainable, others, inputs, training=True)
                return self.compute_loss(x=inputs, y=targets, y_pred=outputs), others

            (loss, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable, others)
            trainable, of_optimizer = self.optimizer.stateless_apply(of_optimizer, gradients, trainable)
            (metric,) = self.metrics  # the loss only: the model has no other metrics
            of_metrics = metric.stateless_update_state(of_metrics, loss)
            logs = {metric.name: metric.stateless_result(of_metrics)}
            return logs, (trainable, others, of_optimizer, of_metrics)

    plain = dense_model(keras)
    return Model(plain.inputs, plain.outputs)


def frozen(case: Case) -> None:
    """A layer that is frozen at first, and unfrozen before a second ``fit``; both after ``compile``."""

    def train(model: Any, batches: Batches) -> History:
        import keras

        losses: List[float] = []
        for trainable in (False, True):
            model.layers[0].trainable = trainable
            model.compile(optimizer=sgd(keras), loss="mean_squared_error")
            before = model.layers[0].get_weights()[0]
            losses += fit(model, batches)["loss"]
            if not trainable:
                case.measure({"metric moved while frozen": _apart([before], model.layers[0].get_weights()[:1])})
        return {"loss": losses}

    compare(case, JaxJob(fit=train))
    case.measure({"reference moved while frozen": 0.0})


def learning_rate(case: Case) -> None:
    """LearningRateScheduler, then ReduceLROnPlateau."""

    def train(model: Any, batches: Batches) -> History:
        from keras import callbacks

        halve = callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch == 1 else rate)
        plateau = callbacks.ReduceLROnPlateau(monitor="loss", factor=0.1, patience=1, min_delta=0.2, min_lr=1e-4)
        history = fit(model, batches, epochs=EPOCHS, callbacks=[halve, plateau])
        rates = history["learning_rate"]
        return {"loss": history["loss"], **{f"learning_rate of epoch {at}": [rate] for at, rate in enumerate(rates)}}

    compare(case, JaxJob(fit=train))


def best_epoch(case: Case) -> None:
    """EarlyStopping restores the weights of the best epoch, and ModelCheckpoint saves the same."""
    path = case.file("best.weights.h5")

    def train(model: Any, batches: Batches) -> History:
        from keras import callbacks

        early = callbacks.EarlyStopping(monitor="val_loss", patience=1, restore_best_weights=True)
        save = callbacks.ModelCheckpoint(str(path), monitor="val_loss", save_best_only=True, save_weights_only=True)
        checked = {
            "validation_data": (batches.inputs, HALF_WAY * batches.targets),
            "validation_batch_size": batches.global_batch,
        }
        history = fit(model, batches, epochs=EPOCHS, callbacks=[early, save], **checked)
        chosen = {"best epoch": early.best_epoch, "epochs": len(history["loss"])}
        return {**history, **{name: [float(value)] for name, value in chosen.items()}}

    import keras

    trained = compare(case, JaxJob(fit=train)).parallel.model
    saved = dense_model(keras)
    saved.load_weights(str(path))
    apart = _apart(saved.get_weights(), trained.get_weights())
    case.measure({"metric saved weights": apart, "reference saved weights": 0.0})


def on_batch(case: Case) -> None:
    """``train_on_batch``, ``test_on_batch`` and ``predict_on_batch``."""

    def train(model: Any, batches: Batches) -> History:
        size = batches.global_batch
        pairs = [
            (batches.inputs[at : at + size], batches.targets[at : at + size])
            for at in range(0, len(batches.inputs), size)
        ]
        steps = [model.train_on_batch(*pair, return_dict=True) for pair in pairs]
        tested = model.test_on_batch(*pairs[0], return_dict=True)
        predicted = np.asarray(model.predict_on_batch(pairs[0][0]))
        last = {**{f"test_{name}": value for name, value in tested.items()}, "predictions": len(predicted)}
        history = {name: [float(np.asarray(step[name])) for step in steps] for name in steps[0]}
        return {**history, **{name: [float(np.asarray(value))] for name, value in last.items()}}

    compare(case, JaxJob(compile=lambda _: {"metrics": ["mae"]}, fit=train))


def _apart(ones: List[Any], others: List[Any]) -> float:
    return max(float(np.max(np.abs(one - other))) for one, other in zip(ones, others))


MODELS: Dict[str, Callable[[Case], None]] = {
    "add-loss": compares(JaxJob(model=add_loss)),
    "outputs": compares(JaxJob(model=seeded.two_outputs, compile=lambda _: seeded.OUTPUTS, data=seeded.two_targets)),
    "train-step": compares(JaxJob(model=own_step)),
    "normalization": compares(JaxJob(model=seeded.normalized)),
    "embedding": compares(
        JaxJob(lambda keras: keras.optimizers.SGD(0.05, momentum=0.9), seeded.embedded, data=seeded.sequences)
    ),
    "recurrent": compares(JaxJob(model=seeded.recurrent, data=seeded.sequences)),
    "attention": compares(JaxJob(model=seeded.attending, data=seeded.sequences)),
    "frozen": frozen,
    "learning-rate": learning_rate,
    "best-epoch": best_epoch,
    "on-batch": on_batch,
}
"""Cases by name."""
