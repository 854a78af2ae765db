"""Options of ``compile`` and of the optimizer that Keras implements separately for several replicas."""

from __future__ import annotations

from typing import Any, Collection, Dict, List, NamedTuple

from kdoctor_job.target.model import CLIPPING, steps_per_execution

TOGETHER = "steps_per_execution"
BUILT_LATE = "optimizer built late"
"""A custom ``train_step`` whose first step builds the optimizer. Without this option, it is built before."""
CLIPS = "clipping"
_SCALES = "loss scaling"
_OF_OPTIMIZER = {
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    CLIPS: CLIPPING,
    "use_ema": ("use_ema",),
    "weight_decay": ("weight_decay",),
}
"""Options to the attributes of an optimizer that turn them on."""


class Option(NamedTuple):
    """One option that the job uses."""

    name: str
    value: str


def options_of(model: Any) -> List[Option]:
    """The options that the compiled model uses."""
    found = []
    if getattr(model, "jit_compile", getattr(model, "_jit_compile", None)) is True:
        found.append(Option("jit_compile", "jit_compile=True"))
    if getattr(model, "run_eagerly", False) is True:
        found.append(Option("run_eagerly", "run_eagerly=True"))
    together = steps_per_execution(model)
    if together and together > 1:
        found.append(Option(TOGETHER, f"{TOGETHER}={together}"))
    optimizer = getattr(model, "optimizer", None)
    if hasattr(optimizer, "inner_optimizer"):
        found.append(Option(_SCALES, type(optimizer).__name__))
    for name, attributes in _OF_OPTIMIZER.items():
        given = [_written(one, label) for one in optimizers_of(optimizer) for label in attributes if _is_on(one, label)]
        if given:
            found.append(Option(name, ", ".join(given)))
    return found


def optimizers_of(optimizer: Any) -> List[Any]:
    """The optimizer, and the one that it wraps."""
    inner = getattr(optimizer, "inner_optimizer", None)
    return [one for one in (optimizer, inner) if one is not None]


def remove(arguments: Dict[str, Any], without: Collection[str]) -> None:
    """Remove options from the arguments of ``compile``. Their optimizer must be new and not built."""
    if "jit_compile" in without:
        arguments["jit_compile"] = False
    if "run_eagerly" in without:
        arguments["run_eagerly"] = False
    optimizer = arguments["optimizer"]
    if _SCALES in without and hasattr(optimizer, "inner_optimizer"):
        optimizer = arguments["optimizer"] = optimizer.inner_optimizer
    for name in without:
        for attribute in _OF_OPTIMIZER.get(name, ()):
            for one in optimizers_of(optimizer):
                if _is_on(one, attribute):
                    setattr(one, attribute, False if attribute == "use_ema" else None)


def _is_on(optimizer: Any, attribute: str) -> bool:
    value = getattr(optimizer, attribute, None)
    return isinstance(value, (bool, int, float)) and bool(value)


def _written(optimizer: Any, attribute: str) -> str:
    value = getattr(optimizer, attribute)
    return f"{attribute}={value}" if isinstance(value, bool) else f"{attribute}={float(value):g}"
