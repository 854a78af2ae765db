"""The data as a class that overrides ``fit`` passes it on to that of Keras, such as preprocessed text."""

from __future__ import annotations

import inspect
from typing import Any, List

import tensorflow as tf

from kdoctor_job.target.batches import dataset
from kdoctor_job.target.cloning import CopyError
from kdoctor_job.target.parts import describe, keras_of


def as_keras_gets(model: Any, batch: Any) -> Any:
    """The batch that the model is called with if ``fit`` gets this one.

    Args:
        model: a copy of the job's model, whose ``fit`` is called. That of Keras is not.
        batch: an element of the job's data.

    Raises:
        CopyError: the class trains in another way, or not on a ``tf.data.Dataset``.
    """
    base = keras_of(model).Model
    inherited = base.fit
    if type(model).fit is inherited:
        return batch
    own = f"{type(model).__name__} overrides fit"
    passed_on: List[Any] = []

    def recording(*arguments: Any, **named: Any) -> None:
        passed_on.append(inspect.signature(inherited).bind(*arguments, **named).arguments.get("x"))

    is_own, base.fit = "fit" in vars(base), recording
    try:
        model.fit(dataset([batch]), epochs=1, verbose=0)
    except Exception as error:
        if not passed_on:
            raise CopyError(f"{own}, which raised {describe(error)} for a tf.data.Dataset") from error
    finally:
        if is_own:
            base.fit = inherited
        else:
            del base.fit
    if len(passed_on) != 1 or not isinstance(passed_on[0], tf.data.Dataset):
        raise CopyError(f"{own}, which does not call that of Keras once, with a Dataset: examine your loop with --loop")
    return next(iter(passed_on[0]))
