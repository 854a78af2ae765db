"""The parts of a checklist's document, each validated by itself."""

# No "from __future__ import annotations": pydantic would compile the text of each, on every start.
import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from kdoctor.errors import did_you_mean
from kdoctor.facts import LIBRARY_NAMES
from kdoctor.model import Severity
from kdoctor.smoke.scenario import Strategy

KERAS_SETTINGS = ("keras.floatx", "keras.epsilon", "keras.image_data_format")
"""What ``keras.json`` sets for both Keras."""
_FLAG = re.compile(rf"(?:tf_)?xla_\w+|{'|'.join(map(re.escape, KERAS_SETTINGS))}")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("kdoctor", "{message}", {"message": message})


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        hint = f'; for this release write "=={text}" or "~={text}"' if re.fullmatch(r"\d+(\.\d+)+", text) else ""
        raise _wrong(f"{text!r} is no version specifier (PEP 440), such as '>=3.10,<3.14'{hint}") from None
    if not text.strip():
        raise _wrong("the version specifier is empty, so it would test nothing: for any version write '>=0'")
    return text


def _distribution(name: str) -> str:
    if not _DISTRIBUTION.fullmatch(name):
        raise _wrong(f"{name!r} is no name of a package")
    return name


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise _wrong(f"{name!r} is no name of an environment variable")
    return name


def _library(name: str) -> str:
    # Few checklists state a library, and only they pay for the import.

    if name not in LIBRARY_NAMES:
        meant = did_you_mean(name, LIBRARY_NAMES) or f"; known are {', '.join(LIBRARY_NAMES)}"
        raise _wrong(f"{name!r} is no library that TensorFlow opens{meant}")
    return name


def _name_the_libraries(schema: dict[str, Any]) -> None:
    schema["propertyNames"] = {"enum": list(LIBRARY_NAMES)}


def _flag(name: str) -> str:
    if not _FLAG.fullmatch(name):
        meant = did_you_mean(name, KERAS_SETTINGS)
        raise _wrong(
            f"{name!r} is no flag of XLA (xla_..., tf_xla_...) and no setting of Keras ({', '.join(KERAS_SETTINGS)})"
            f"{meant}; a variable stands under 'environment'"
        )
    return name


def _filled(text: str) -> str:
    if not text.strip():
        raise _wrong("is empty: say it in words")
    return text.strip()


def _replicas(value: Any) -> Any:
    if value == "gpus" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64):  # noqa: PLR2004
        return value
    meant = did_you_mean(str(value), ["gpus"])
    raise _wrong(f"expected 'gpus' (one on each visible GPU) or a number from 1 to 64, not {value!r}{meant}")


def _date(value: Any) -> dt.date:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    raise _wrong(f"expected a date such as 2030-12-31, not {str(value)!r}")


def _none_is_empty(value: Any) -> Any:
    return [] if value is None else value


Specifier = Annotated[str, AfterValidator(_specifier)]
Words = Annotated[str, AfterValidator(_filled)]
Pattern = Annotated[str, AfterValidator(_filled)]
Replicas = Annotated[
    int | str,
    BeforeValidator(_replicas),
    WithJsonSchema({"anyOf": [{"const": "gpus"}, {"type": "integer", "minimum": 1, "maximum": 64}]}),
]
Date = Annotated[dt.date, BeforeValidator(_date)]


class Part(BaseModel):
    """What all parts have in common: no other keys, and no value is taken for one of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class GpusPart(Part):
    """The GPUs that are expected: how many, and of which model."""

    count: Annotated[int, Field(ge=0, description="Exactly this many; 0 expects none.")] | None = None
    at_least: Annotated[int, Field(ge=1, description="This many or more.")] | None = None
    model: Annotated[Words, Field(description="Pattern of the name: 'NVIDIA H100*'.")] | None = None


class FrameworkPart(Part):
    """What ``tf.keras`` is, whichever distributions bring it."""

    tensorflow: Annotated[Specifier, Field(description="Specifier of TensorFlow's version.")] | None = None
    keras: Annotated[Specifier, Field(description="Specifier of the version of the Keras that is used.")] | None = None
    flavour: Annotated[Literal["keras", "tf-keras"], Field(description="Keras 3, or Keras 2.")] | None = None
    backend: Annotated[Words, Field(description="The backend of Keras 3.")] | None = None


class SdkPart(Part):
    """The CUDA toolkit that TensorFlow was built against."""

    cuda: Annotated[Specifier, Field(description="Specifier of the CUDA release.")] | None = None
    cudnn: Annotated[Specifier, Field(description="Specifier of the cuDNN release; builds often state the major.")] | (
        None
    ) = None


class AssumptionsPart(Part):
    """What is taken for granted about the machine; each must be judged by a check of the list."""

    python: Annotated[Specifier, Field(description="Specifier of the interpreter's version.")] | None = None
    packages: dict[Annotated[str, AfterValidator(_distribution)], Specifier] = {}
    gpus: GpusPart | None = None
    environment: Annotated[
        dict[Annotated[str, AfterValidator(_variable)], str],
        Field(description="Variable to its exact value, or to the word unset."),
    ] = {}
    framework: FrameworkPart | None = None
    sdk: SdkPart | None = None
    driver: Annotated[Specifier, Field(description="Specifier of the NVIDIA driver's version.")] | None = None
    libraries: Annotated[
        dict[Annotated[str, AfterValidator(_library)], Specifier],
        Field(
            description="Library to the specifier of the version that the loader would give to TensorFlow.",
            json_schema_extra=_name_the_libraries,
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
    image: Annotated[Words, Field(description="Pattern of the container image's name.")] | None = None


class CheckPart(Part):
    """A check that is asked for."""

    id: str
    severity: Annotated[Severity, Field(strict=False)] | None = None
    accept_unknown: Annotated[Words, Field(description="Why it may be unknown here.")] | None = None
    parameters: dict[str, Any] = {}


class ScenarioPart(Part):
    """A smoke training that is asked for."""

    id: str
    kind: Literal["baseline", "edge-case", "failure-path"]
    strategy: Annotated[Strategy | None, Field(description="That of the scenario, for the reader.")] = None
    replicas: Replicas
    expect: Annotated[Words, Field(description="The expected outcome in plain language.")]


class WaiverPart(Part):
    """A reviewed agreement to live with a failure for a while."""

    check: str
    subject: Annotated[Pattern, Field(description="Pattern of the subjects; all if it is not given.")] = "*"
    reason: Words
    owner: Words
    expires: Annotated[Date, Field(description="The last day on which it holds.")]


class RollbackPart(Part):
    """What is decided in advance about failures.

    Patterns are ids, families or globs of the list's checks, or ``severity:error``, ``severity:warning`` and
    ``severity:info``.
    """

    decides: Annotated[Words, Field(description="Who decides.")]
    within: Annotated[Words, Field(description="By when it is decided: '30 minutes', 'the next morning'.")] | None = (
        None
    )
    at_once: Annotated[tuple[Pattern, ...], Field(strict=False, description="Failures to roll back at once.")] = ()
    fix_forward: Annotated[tuple[Pattern, ...], Field(strict=False, description="Failures to mend in place.")] = ()
    investigate: Annotated[tuple[Pattern, ...], Field(strict=False, description="Failures to look into first.")] = ()


class Document(Part):
    """A checklist, as it is written."""

    schema_: Annotated[Literal["kdoctor/checklist/v1"], Field(alias="schema")]
    extends: Annotated[Words, Field(description="A shipped checklist's name, or a path from this file.")] | None = None
    name: Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
    version: Annotated[int, Field(ge=1)]
    owner: Words
    assumptions: Annotated[AssumptionsPart, Field(default_factory=AssumptionsPart)]
    checks: Annotated[list[CheckPart], Field(min_length=1)]
    scenarios: Annotated[list[ScenarioPart], BeforeValidator(_none_is_empty)] = []
    without: Annotated[
        dict[str, Words],
        Field(
            description="What this list does without, and why: a kind of scenario (baseline, edge-case, failure-path), "
            "or the id of an inherited check or scenario."
        ),
    ] = {}
    waivers: Annotated[list[WaiverPart], BeforeValidator(_none_is_empty)] = []
    rollback: RollbackPart | None = None


PARTS: Mapping[tuple[str, ...], type[Part]] = {
    (): Document,
    ("assumptions",): AssumptionsPart,
    ("assumptions", "gpus"): GpusPart,
    ("assumptions", "framework"): FrameworkPart,
    ("assumptions", "sdk"): SdkPart,
    ("checks",): CheckPart,
    ("scenarios",): ScenarioPart,
    ("waivers",): WaiverPart,
    ("rollback",): RollbackPart,
}
