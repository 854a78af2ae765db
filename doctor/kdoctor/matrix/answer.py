"""The document of ``kdoctor matrix --format json``, for its schema; :mod:`kdoctor.matrix.render` writes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdoctor.documents import Document


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class AnswerMatrix(_Part):
    """The version matrix that answers."""

    name: str
    updated: str
    platform: str


class AnswerGpu(_Part):
    """A GPU that is asked about."""

    name: str
    capability: str


class AnswerFact(_Part):
    """What is known of the machine, and from where."""

    label: str
    value: str
    origin: str


class AnswerMachine(_Part):
    """The machine that is asked about."""

    driver: str | None
    gpus: Annotated[list[AnswerGpu] | None, Field(description="None where they are not known; empty for the CPU.")]
    unknown_gpus: Annotated[list[str], Field(description="GPUs that the matrix does not know.")]
    python: str | None
    glibc: str | None
    platform: str | None
    tensorflow_installed: str | None
    facts: list[AnswerFact]


class AnswerNccl(_Part):
    """How a release uses NCCL."""

    linkage: str
    version: str | None
    basis: str | None


class AnswerRelease(_Part):
    """A TensorFlow release."""

    version: str
    distribution: str
    python: str
    requires: list[str]
    and_cuda: Annotated[list[str] | None, Field(description="None where the release has no such extra.")]
    cuda: str | None
    cudnn: str | None
    cubins: Annotated[list[int], Field(description="Architectures of its machine code: 80 is sm_80.")]
    ptx: Annotated[list[int], Field(description="Architectures of its intermediate code: 90 is compute_90.")]
    nccl: AnswerNccl
    glibc: str | None
    runpath: list[str]
    note: str | None
    inferred_from: str | None
    verified: str | None
    source: list[str]


class AnswerReason(_Part):
    """What speaks against a release, is not known, or should be known."""

    rule: str
    failure: Annotated[str | None, Field(description="Id of the known failure that this is.")]
    text: str


class AnswerInstall(_Part):
    """How to install a release."""

    command: str
    requirements: list[str]


class AnswerVerdict(AnswerRelease):
    """Whether a release runs on the machine."""

    oldest_driver: str | None
    outcome: Literal["runs", "does-not-run", "unknown"]
    against: list[AnswerReason]
    missing: list[AnswerReason]
    cautions: list[AnswerReason]
    install: AnswerInstall


class AnswerKnownBad(_Part):
    """A combination that is known to fail."""

    id: str
    when: dict[str, Any]
    job: str | None
    effect: str
    symptom: str
    ended_by: dict[str, Any]
    fix: str
    source: list[str]


class AnswerCommand(_Part):
    """How to install it for current GPUs."""

    command: str


class AnswerNeeds(AnswerRelease):
    """What a release needs."""

    oldest_driver: str | None
    ptx_driver: str | None
    capabilities_by_machine_code: list[str]
    capabilities_by_ptx: list[str]
    capabilities_excluded: list[str]
    libraries: dict[str, str]
    known_bad: list[AnswerKnownBad]
    install: AnswerCommand


class MatrixAnswer(Document):
    """Which TensorFlow runs where."""

    schema_: Annotated[Literal["kdoctor/matrix-answer/v1"], Field(alias="schema")]
    kdoctor: str
    matrix: AnswerMatrix
    machine: Annotated[AnswerMachine | None, Field(description="None where none is asked about.")]
    best: AnswerVerdict | None
    needs: Annotated[AnswerNeeds | None, Field(description="Only with --tensorflow.")] = None
    releases: list[AnswerVerdict]
