"""Names the framework and the Keras of a run, as far as they are known."""

from kdoctor.facts import SmokeRun


def keras_of(run: SmokeRun) -> str:
    """The Keras of a run in a list of versions: ``keras 3.15.1``."""
    return run.keras or "Keras unknown"


def this_keras(run: SmokeRun) -> str:
    """The Keras of a run in a sentence: ``keras 3.15.1``, ``this Keras``."""
    return run.keras or "this Keras"


def framework_and_version(run: SmokeRun) -> str:
    """The framework of a run with its version, if that is known: ``TensorFlow 2.21.0``."""
    version = run.jax or run.torch or run.tensorflow
    return f"{framework_name(run)} {version}" if version else framework_name(run)


def framework_name(run: SmokeRun) -> str:
    """The framework of a run."""
    return "JAX" if run.jax else "torch" if run.torch else "TensorFlow"
