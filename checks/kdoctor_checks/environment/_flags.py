"""Judges flags in ``XLA_FLAGS`` and ``TF_XLA_FLAGS``, and settings in ``keras.json``."""

import shlex

from kdoctor.commands.keras_json import put_settings
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.facts import Environment, KerasChoice, Unavailable
from kdoctor.model import UNSET, Evidence, Outcome, Unjudged
from kdoctor.text.secrets import MASK
from kdoctor_checks._expected import other_value

KERAS = "keras."
"""Prefix of the names of Keras settings."""


def judge_flag(name: str, wanted: str, environment: Environment) -> Outcome:
    """One XLA flag. The last value counts, and a flag without a value is ``true``."""
    variable = "TF_XLA_FLAGS" if name.startswith("tf_") else "XLA_FLAGS"
    value = environment.variables.get(variable)
    if value is None and environment.is_unset(variable) is None:
        return Unjudged(subject=name, reason=f"{variable} was not read")
    flags = read_flags(value or "")
    if flags is None:
        return Unjudged(subject=name, reason=f"{variable} names a file of flags, or is not valid: {value!r}")
    found = flags.get(name, UNSET)
    if found == wanted or (found.lower() in ("true", "false") and found.lower() == wanted.lower()):
        return Evidence(subject=name, observed=f"{found} ({variable})")
    if MASK in found:
        return Unjudged(subject=name, reason="its value has a secret and is masked")
    others = [f"--{key}={text}" for key, text in flags.items() if key != name]
    flags_wanted = quoted(*others, *([] if wanted == UNSET else [f"--{name}={wanted}"]))
    return other_value(
        name, found, wanted, (set_variable(variable, flags_wanted or None), set_variable(variable, value))
    )


def read_flags(value: str) -> dict[str, str] | None:
    """Flag to value; None if the variable names a file or is not valid, as in XLA (xla/parse_flags_from_env.cc)."""
    try:
        words = shlex.split(value)
    except ValueError:
        return None
    if words and not words[0].startswith("-"):
        return None
    pairs = (word.lstrip("-").partition("=") for word in words)
    return {name: text if equals else "true" for name, equals, text in pairs}


def judge_setting(name: str, wanted: str, keras: KerasChoice | Unavailable) -> Outcome:
    """One Keras setting, from ``keras.json`` or the default."""
    if isinstance(keras, Unavailable):
        return Unjudged(subject=name, reason=keras.unavailable)
    key = name.removeprefix(KERAS)
    found = keras.settings.get(key)
    if found is None:
        return Unjudged(subject=name, reason="the Keras settings were not recorded")
    if found == wanted or (key == "epsilon" and _number(found) == _number(wanted)):
        return Evidence(subject=name, observed=found)
    return other_value(name, found, wanted, (put_settings({key: wanted}), put_settings({key: found})), "in keras.json")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
