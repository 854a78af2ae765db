"""Saves the model before a training is stopped."""

from pathlib import Path
from typing import Any

from kdoctor_watch.publish import LOGGER, brief


def save(model: Any, path: Path) -> Path:
    """Save the model, or its weights if it cannot be saved whole. A file that is there is replaced at the end only.

    Returns:
        The file that was written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _written(model.save, path)
    except Exception as error:  # noqa: BLE001 - classes of the user's without get_config, for example
        weights = path.with_name(f"{path.name.partition('.')[0]}.weights.h5")
        saved = _written(model.save_weights, weights)
        LOGGER.warning("only the weights of the model were saved: %s", brief(error))
        return saved


def _written(write: Any, path: Path) -> Path:
    partial = path.with_name(f"partial-{path.name}")
    try:
        write(str(partial))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
