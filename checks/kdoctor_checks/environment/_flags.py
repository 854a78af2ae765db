"""Single flags of ``XLA_FLAGS`` and ``TF_XLA_FLAGS``, and the settings of ``keras.json``, against what is wanted."""

from __future__ import annotations

import shlex

from kdoctor.commands.keras_json import put_settings
from kdoctor.facts import Environment, KerasChoice, Unavailable
from kdoctor.model import UNSET, Action, Evidence, Finding, Outcome, Remedy, Rollback, Unjudged
from kdoctor.text.secrets import MASK

KERAS = "keras."
"""Begins the names of Keras' settings."""


def judge_flag(name: str, wanted: str, environment: Environment) -> Outcome:
    """One flag of XLA: later ones win, and one without a value is ``true``."""
    variable = "TF_XLA_FLAGS" if name.startswith("tf_") else "XLA_FLAGS"
    value = environment.get(variable)
    if value is None and environment.is_unset(variable) is None:
        return Unjudged(subject=name, reason=f"{variable} was not looked for")
    flags = read_flags(value or "")
    if flags is None:
        return Unjudged(subject=name, reason=f"{variable} names a file of flags, or cannot be read: {value!r}")
    found = flags.get(name, UNSET)
    if found == wanted or (found.lower() in ("true", "false") and found.lower() == wanted.lower()):
        return Evidence(subject=name, observed=f"{found} ({variable})")
    if MASK in found:
        return Unjudged(subject=name, reason="its value holds a secret, and is masked")
    others = [f"--{key}={text}" for key, text in flags.items() if key != name]
    there = shlex.join([*others, *([] if wanted == UNSET else [f"--{name}={wanted}"])])
    back = f"unset {variable}" if value is None else f"export {variable}={shlex.quote(value)}"
    return Finding(
        subject=name,
        observed=found,
        expected=wanted,
        remedy=Remedy(
            summary="Set it in the script or the unit that starts the job.",
            action=Action.CONFIGURE,
            commands=(f"export {variable}={shlex.quote(there)}" if there else f"unset {variable}",),
        ),
        rollback=Rollback.to("the recorded value", back),
    )


def read_flags(value: str) -> dict[str, str] | None:
    """Flag to value, or None where the variable names a file, as XLA reads it (xla/parse_flags_from_env.cc)."""
    try:
        words = shlex.split(value)
    except ValueError:
        return None
    if words and not words[0].startswith("-"):
        return None
    pairs = (word.lstrip("-").partition("=") for word in words)
    return {name: text if equals else "true" for name, equals, text in pairs}


def judge_setting(name: str, wanted: str, keras: KerasChoice | Unavailable) -> Outcome:
    """One setting of Keras, as ``keras.json`` or Keras itself has it."""
    if isinstance(keras, Unavailable):
        return Unjudged(subject=name, reason=keras.unavailable)
    key = name.removeprefix(KERAS)
    found = keras.settings.get(key)
    if found is None:
        return Unjudged(subject=name, reason="Keras' settings were not recorded")
    if found == wanted or (key == "epsilon" and _number(found) == _number(wanted)):
        return Evidence(subject=name, observed=found)
    return Finding(
        subject=name,
        observed=found,
        expected=wanted,
        remedy=Remedy(
            summary="Put the agreed setting into keras.json, or agree on this one in the checklist.",
            action=Action.CONFIGURE,
            commands=(put_settings({key: wanted}),),
        ),
        rollback=Rollback.to("the recorded setting", put_settings({key: found})),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
