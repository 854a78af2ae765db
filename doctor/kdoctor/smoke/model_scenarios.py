"""The built-in scenarios about metrics, losses, layers and callbacks of a model."""

from kdoctor.smoke.definition import define

MODELS = (
    define(
        "smoke.metrics",
        kind="edge-case",
        title="Metrics that fit reports",
        expect="Accuracy, AUC, precision, recall, RMSE, top-k accuracy and F1 that fit reports for its data and for "
        "validation data are those that NumPy computes. train_on_batch and test_on_batch match one device.",
        cases=("binary", "classes", "on-batch"),
        typical_s=6.0,
    ),
    define(
        "smoke.evaluate",
        kind="edge-case",
        title="evaluate, predict and validation on data that does not divide",
        expect="Loss and metric of evaluate and of validation are those that NumPy computes for all examples. predict "
        "returns one prediction for each example, in order. What Keras 3 does in predict_on_batch, and with a first "
        "batch that does not divide, is reported.",
        cases=("evaluate", "predict", "validation"),
        typical_s=6.0,
    ),
    define(
        "smoke.losses",
        kind="edge-case",
        title="Weighted, regularized and custom losses",
        expect="Sample and class weights, regularizers, several outputs, a custom train_step and eager steps match one "
        "device. What Keras does with a loss of one number for the batch, with masked tokens, and with the loss of the "
        "guide's train_step is reported, and so is the working alternative to each.",
        cases=("sample-weight", "class-weight", "regularizers", "outputs", "run-eagerly", "train-step"),
        typical_s=16.0,
    ),
    define(
        "smoke.layers",
        kind="edge-case",
        title="Normalization, embedding, recurrent and attention layers, and frozen layers",
        expect="Each matches one device on the same global batches.",
        cases=("normalization", "embedding", "recurrent", "attention", "frozen"),
        typical_s=12.0,
    ),
    define(
        "smoke.other-random-layers",
        kind="edge-case",
        version=2,
        title="The other layers with random numbers",
        expect="Each replica draws its own random numbers, and a seed repeats them. What Keras 3 does instead is "
        "reported, and so is an alternative for any layer.",
        cases=("noise", "augmentation", "colors", "seed-per-replica"),
        typical_s=6.0,
    ),
    define(
        "smoke.callbacks",
        kind="edge-case",
        title="Callbacks that decide during a training",
        expect="LearningRateScheduler and ReduceLROnPlateau set the same learning rates as on one device. "
        "EarlyStopping and ModelCheckpoint choose the same epoch, and restore and save its weights.",
        cases=("learning-rate", "best-epoch"),
        typical_s=4.0,
    ),
)
"""Part of the built-in scenarios."""
