"""The document of ``kdoctor matrix --format json``."""

from typing import Annotated, Any, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.matrix.advice import advise
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Verdict
from kdoctor.matrix.view import View, shown_driver
from kdoctor.text.sanitize import clean_json
from kdoctor.version import __version__


class AnswerMatrix(Part):
    """The version matrix that was used."""

    name: str
    updated: str
    platform: str


class AnswerGpu(Part):
    """A GPU that was judged."""

    name: str
    capability: str


class AnswerFact(Part):
    """A fact about the machine, and its origin."""

    label: str
    value: str
    origin: str


class AnswerMachine(Part):
    """The machine that was judged."""

    driver: str | None
    gpus: Annotated[list[AnswerGpu] | None, Field(description="None if not known; empty for the CPU.")]
    unknown_gpus: Annotated[list[str], Field(description="GPUs that the matrix does not contain.")]
    python: str | None
    free_threaded: bool
    glibc: Annotated[str | None, Field(description="A version of glibc, or musl.")]
    without_avx: bool
    platform: str | None
    tensorflow_installed: str | None
    facts: list[AnswerFact]


class AnswerNccl(Part):
    """How a release uses NCCL."""

    linkage: str
    version: str | None
    basis: str | None


class AnswerKernels(Part):
    """GPU code that was built together."""

    cubins: list[int]
    ptx: list[str]
    ptx_isa: str | None


class AnswerRelease(Part):
    """A TensorFlow release."""

    version: str
    distribution: str
    python: str
    requires: list[str]
    and_cuda: Annotated[list[str] | None, Field(description="None if the release has no such extra.")]
    cuda: str | None
    cudnn: str | None
    cubins: Annotated[list[int], Field(description="Architectures of its machine code: 80 is sm_80.")]
    ptx: Annotated[list[str], Field(description="Architectures of its intermediate code: 90 is compute_90.")]
    ptx_isa: Annotated[str | None, Field(description="Version of that PTX; None for that of its CUDA.")]
    kernel_gen: Annotated[
        AnswerKernels | None, Field(description="The kernels of its generator; None if they have the same code.")
    ]
    nccl: AnswerNccl
    tf_keras: Annotated[str | None, Field(description="The newest tf-keras for it, for TF_USE_LEGACY_KERAS=1.")]
    glibc: str | None
    runpath: list[str]
    note: str | None
    inferred_from: str | None
    verified: str | None
    source: list[str]


class AnswerReason(Part):
    """Why a release does not run, what is not known, or what to know about it."""

    rule: str
    failure: Annotated[str | None, Field(description="Id of the known failure, if it is one.")]
    text: str


class AnswerInstall(Part):
    """How to install a release."""

    command: str
    commands: Annotated[list[str], Field(description="With the environment variables that the release needs.")]
    requirements: list[str]


class AnswerVerdict(AnswerRelease):
    """Whether a release runs on the machine."""

    oldest_driver: str | None
    outcome: Literal["runs", "does-not-run", "unknown"]
    against: list[AnswerReason]
    missing: list[AnswerReason]
    cautions: list[AnswerReason]
    install: AnswerInstall


class AnswerKnownBad(Part):
    """A combination that is known to fail."""

    id: str
    when: dict[str, Any]
    job: str | None
    effect: str
    symptom: str
    ended_by: dict[str, Any]
    fix: str
    source: list[str]


class AnswerCommand(Part):
    """How to install it for current GPUs."""

    command: str
    commands: list[str]


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


class AnswerDefect(Part):
    """A feature that a release of Keras gets wrong on several replicas."""

    feature: str
    result: Annotated[str, Field(description="wrong, raises, hangs or crashes.")]
    observed: str


class AnswerKeras(Part):
    """What was measured with a release of Keras on several replicas."""

    package: str
    release: str
    features: Annotated[int, Field(description="Number of measured features.")]
    defects: list[AnswerDefect]


class AnswerAdvice(Part):
    """What to do on the machine, as on a terminal."""

    text: str
    reasons: list[str]
    commands: list[str]
    notes: list[str]


class MatrixAnswer(Document):
    """Which TensorFlow runs where."""

    schema_: Annotated[Literal["kdoctor/matrix-answer/v1"], Field(alias="schema")]
    kdoctor: str
    matrix: AnswerMatrix
    machine: Annotated[AnswerMachine | None, Field(description="None if no machine was judged.")]
    best: AnswerVerdict | None
    advice: list[AnswerAdvice]
    needs: Annotated[AnswerNeeds | None, Field(description="Only with --tensorflow.")] = None
    keras: Annotated[
        list[AnswerKeras],
        Field(description="The newest measured Keras and tf_keras for the best or the named release."),
    ]
    releases: list[AnswerVerdict]


def render_json(view: View) -> str:
    """The view as JSON."""
    machine = view.machine
    values = {
        "schema": "kdoctor/matrix-answer/v1",
        "kdoctor": __version__,
        "matrix": view.matrix,
        "machine": None,
        "best": _verdict(view, view.best) if view.best else None,
        "advice": list(advise(view)),
        "needs": _needs(view.needs) if view.needs else None,
        "keras": view.keras,
        "releases": [_verdict(view, verdict) for verdict in view.verdicts],
    }
    if machine is not None:
        values["machine"] = {
            **vars(machine),
            "unknown_gpus": machine.unnamed_gpus,
            "tensorflow_installed": view.installed,
            "facts": view.facts,
        }
    answer = MatrixAnswer.model_validate(values, from_attributes=True)
    text = answer.model_dump_json(by_alias=True, indent=2, exclude=None if view.needs else {"needs"})
    return clean_json(text) + "\n"


def _verdict(view: View, verdict: Verdict) -> dict[str, Any]:
    return {
        **verdict.release.model_dump(),
        "oldest_driver": shown_driver(view, verdict.release),
        "outcome": verdict.outcome,
        "against": verdict.against,
        "missing": verdict.missing,
        "cautions": verdict.cautions,
        "install": verdict,
    }


def _needs(needs: Needs) -> dict[str, Any]:
    return {
        **needs.release.model_dump(),
        "oldest_driver": needs.oldest_driver,
        "ptx_driver": needs.ptx_driver,
        "capabilities_by_machine_code": [kind.capability for kind in needs.by_machine_code],
        "capabilities_by_ptx": [kind.capability for kind in needs.by_ptx],
        "capabilities_excluded": [kind.capability for kind in needs.excluded],
        "libraries": needs.sonames,
        "known_bad": needs.known_bad,
        "install": needs,
    }
