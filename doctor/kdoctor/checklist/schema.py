"""The checklist as a document: what the file may say, whatever plugins are installed."""
# ruff: noqa: RUF012 - pydantic copies the defaults

import datetime as dt
import re
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from kdoctor.errors import did_you_mean
from kdoctor.facts import LIBRARY_NAMES
from kdoctor.model import Severity
from kdoctor.smoke.scenario import Strategy
from kdoctor.yamldoc.validation import StrictDocument, StrictPart, invalid

SCHEMA: Literal["kdoctor/checklist/v1"] = "kdoctor/checklist/v1"

KERAS_SETTINGS = ("keras.floatx", "keras.epsilon", "keras.image_data_format")
"""Settings in ``keras.json`` that both Keras 2 and Keras 3 read."""
_FLAG = re.compile(rf"(?:tf_)?xla_\w+|{'|'.join(map(re.escape, KERAS_SETTINGS))}")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_NAME = r"^[a-z0-9]+([._-][a-z0-9]+)*$"
_MOST_REPLICAS = 64


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        hint = f'; for this release write "=={text}" or "~={text}"' if re.fullmatch(r"\d+(\.\d+)+", text) else ""
        raise invalid(f"{text!r} is not a version specifier (PEP 440) such as '>=3.10,<3.14'{hint}") from None
    if not text.strip():
        raise invalid("is empty, so it would test nothing; write '>=0' for any version")
    return text


def _distribution(name: str) -> str:
    if not _DISTRIBUTION.fullmatch(name):
        raise invalid(f"{name!r} is not a package name")
    return name


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise invalid(f"{name!r} is not the name of an environment variable")
    return name


def _library(name: str) -> str:
    if name not in LIBRARY_NAMES:
        meant = did_you_mean(name, LIBRARY_NAMES) or f"; expected one of {', '.join(LIBRARY_NAMES)}"
        raise invalid(f"{name!r} is not a library that TensorFlow loads{meant}")
    return name


def _flag(name: str) -> str:
    if not _FLAG.fullmatch(name):
        raise invalid(
            f"{name!r} is neither an XLA flag (xla_..., tf_xla_...) nor a Keras setting ({', '.join(KERAS_SETTINGS)}); "
            f"variables belong under 'environment'{did_you_mean(name, KERAS_SETTINGS)}"
        )
    return name


def _name(text: str) -> str:
    if not re.match(_NAME, text):
        raise invalid(
            f"{text!r} is not a valid name; use lower-case letters, digits and hyphens, such as 'multi-gpu-keras'"
        )
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise invalid("is empty")
    return text.strip()


def _not_empty(value: Any) -> Any:
    if value is None or value == []:
        raise invalid("is empty: a checklist needs at least one check")
    return value


def _replicas(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if value == "gpus" or (is_number and 1 <= value <= _MOST_REPLICAS):
        return value
    meant = did_you_mean(str(value), ["gpus"])
    raise invalid(f"expected 'gpus' (one per visible GPU) or a number from 1 to {_MOST_REPLICAS}, not {value!r}{meant}")


def _date(value: Any) -> dt.date:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    raise invalid(f"expected a date such as 2030-12-31, not {str(value)!r}")


def _none_is_empty(value: Any) -> Any:
    return [] if value is None else value


Specifier = Annotated[str, AfterValidator(_specifier)]
Text = Annotated[str, AfterValidator(_filled)]
Patterns = Annotated[tuple[Text, ...], Field(strict=False)]
Replicas = Annotated[
    int | str,
    BeforeValidator(_replicas),
    WithJsonSchema({"anyOf": [{"const": "gpus"}, {"type": "integer", "minimum": 1, "maximum": _MOST_REPLICAS}]}),
]
Date = Annotated[dt.date, BeforeValidator(_date)]


class GpusPart(StrictPart):
    """The expected GPUs: how many, and which model."""

    count: Annotated[int, Field(ge=0, description="Exactly this many; 0 expects none.")] | None = None
    at_least: Annotated[int, Field(ge=1, description="This many or more.")] | None = None
    model: Annotated[Text, Field(description="Pattern of the name: 'NVIDIA H100*'.")] | None = None


class FrameworkPart(StrictPart):
    """What ``tf.keras`` is, whichever distributions provide it."""

    tensorflow: Annotated[Specifier, Field(description="Version specifier of TensorFlow.")] | None = None
    keras: Annotated[Specifier, Field(description="Version specifier of the Keras that is used.")] | None = None
    flavour: Annotated[Literal["keras", "tf-keras"], Field(description="Keras 3, or Keras 2.")] | None = None
    backend: Annotated[Text, Field(description="The backend of Keras 3.")] | None = None


class SdkPart(StrictPart):
    """The CUDA toolkit that TensorFlow was built against."""

    cuda: Annotated[Specifier, Field(description="Version specifier of CUDA.")] | None = None
    cudnn: Annotated[Specifier, Field(description="Version specifier of cuDNN; builds often name the major only.")] | (
        None
    ) = None


class AssumptionsPart(StrictPart):
    """What the job assumes of the machine. The check that judges an assumption is added to the list."""

    python: Annotated[Specifier, Field(description="Version specifier of the interpreter.")] | None = None
    packages: dict[Annotated[str, AfterValidator(_distribution)], Specifier] = {}
    gpus: GpusPart | None = None
    environment: Annotated[
        dict[Annotated[str, AfterValidator(_variable)], str],
        Field(description="Variable to its exact value, or to the word unset."),
    ] = {}
    framework: FrameworkPart | None = None
    sdk: SdkPart | None = None
    driver: Annotated[Specifier, Field(description="Version specifier of the NVIDIA driver.")] | None = None
    libraries: Annotated[
        dict[Annotated[str, AfterValidator(_library)], Specifier],
        Field(
            description="Library to the version specifier of the file that the loader would give to TensorFlow.",
            json_schema_extra={"propertyNames": {"enum": list(LIBRARY_NAMES)}},
        ),
    ] = {}
    flags: Annotated[
        dict[Annotated[str, AfterValidator(_flag)], str],
        Field(
            description="Flag of XLA_FLAGS or TF_XLA_FLAGS, or setting of Keras (keras.floatx, keras.epsilon, "
            "keras.image_data_format), to its exact value, or to the word unset.",
            json_schema_extra={"propertyNames": {"pattern": f"^({_FLAG.pattern})$"}},
        ),
    ] = {}
    image: Annotated[Text, Field(description="Pattern of the container image's name.")] | None = None


class CheckPart(StrictPart):
    """A check to run."""

    id: str
    severity: Annotated[Severity, Field(strict=False)] | None = None
    accept_unknown: Annotated[Text, Field(description="Why the check may be unknown here.")] | None = None
    parameters: dict[str, Any] = {}


class ScenarioPart(StrictPart):
    """A smoke training to run."""

    id: str
    kind: Literal["baseline", "edge-case", "failure-path"]
    strategy: Annotated[Strategy | None, Field(description="The scenario's strategy, for the reader.")] = None
    replicas: Replicas
    expect: Annotated[Text, Field(description="The expected outcome, in plain language.")]


class WaiverPart(StrictPart):
    """A reviewed decision to accept a failure for a while."""

    check: str
    subject: Annotated[Text, Field(description="Pattern of the subjects; all if omitted.")] = "*"
    reason: Text
    owner: Text
    expires: Annotated[Date, Field(description="The last day on which the waiver applies.")]


class RollbackPart(StrictPart):
    """What to do about failures.

    Patterns are ids, families or globs of the list's checks, or ``severity:error``, ``severity:warning`` and
    ``severity:info``.
    """

    decides: Annotated[Text, Field(description="Who decides.")]
    within: (
        Annotated[Text, Field(description="Deadline for the decision: '30 minutes', 'the next morning'.")] | None
    ) = None
    at_once: Annotated[Patterns, Field(description="Failures to roll back at once.")] = ()
    fix_forward: Annotated[Patterns, Field(description="Failures to fix in place.")] = ()
    investigate: Annotated[Patterns, Field(description="Failures to investigate first.")] = ()


class ChecklistDocument(StrictDocument):
    """A checklist file."""

    schema_: Annotated[Literal["kdoctor/checklist/v1"], Field(alias="schema")]
    extends: Annotated[Text, Field(description="A shipped checklist's name, or a path from this file.")] | None = None
    name: Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": _NAME})]
    version: Annotated[int, Field(ge=1)]
    owner: Text
    assumptions: Annotated[AssumptionsPart, Field(default_factory=AssumptionsPart)]
    checks: Annotated[list[CheckPart], Field(min_length=1), BeforeValidator(_not_empty)]
    scenarios: Annotated[list[ScenarioPart], BeforeValidator(_none_is_empty)] = []
    without: Annotated[
        dict[str, Text],
        Field(
            description="What this checklist leaves out, and why: a kind of scenario (baseline, edge-case, "
            "failure-path), or the id of an inherited check or scenario."
        ),
    ] = {}
    waivers: Annotated[list[WaiverPart], BeforeValidator(_none_is_empty)] = []
    rollback: RollbackPart | None = None

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema, for editors. A checklist that extends another states only what it changes."""
        schema = super().json_schema()
        inherited = [key for key in schema["required"] if key not in ("schema", "name", "version")]
        entry = schema["$defs"]["ScenarioPart"]
        schema["required"] = ["schema", "name", "version"]
        schema["if"] = {"not": {"required": ["extends"]}}
        schema["then"] = {
            "required": inherited,
            "properties": {"scenarios": {"items": {"required": entry.pop("required")}}},
        }
        entry["required"] = ["id"]
        return schema
