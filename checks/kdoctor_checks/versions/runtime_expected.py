import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor.check import check
from kdoctor.commands.packages import restore
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.commands.system import previous_driver, upgrade_driver
from kdoctor.facts import Gpus, Host, KerasChoice, Libraries, Library, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.facts.libraries import WHEELS
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import (
    READ_ONLY,
    Assumptions,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Unjudged,
)
from kdoctor_checks._builds import cuda_of, release_of
from kdoctor_checks._expected import OR_AGREE, install_agreed, judge_version, other_value
from kdoctor_checks._gpus import NEW_CONTAINER
from kdoctor_checks._versions import first_short, meets, parse_specifiers, parse_version

_Tools = tuple[Target, Packages]
_JUDGED = ("framework", "sdk", "driver", "libraries", "image")


@check("versions.runtime-expected", severity=Severity.ERROR, judges=_JUDGED)
def runtime_expected(
    target: Target,
    packages: Packages,
    tensorflow: TensorFlowBuild | Unavailable,
    keras: KerasChoice | Unavailable,
    gpus: Gpus | Unavailable,
    libraries: Libraries | Unavailable,
    host: Host | Unavailable,
    matrix: VersionMatrix,
    assumptions: Assumptions,
) -> Iterator[Outcome]:
    """Framework, SDK, driver, libraries and container image match the checklist.

    Why: the checklist was agreed on, and the job was tested, with these. With another driver, another cuDNN that the
    loader finds first, or another backend, it is a different job even if no package changed.
    Remedy: install or choose what was agreed, or change the checklist.
    Sources:
        https://packaging.python.org/en/latest/specifications/version-specifiers/
        https://keras.io/getting_started/#configuring-your-backend
        https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    tools = (target, packages)
    if not assumptions.stated().intersection(_JUDGED):
        yield NotApplicable(reason="the checklist names no framework, SDK, driver, library or image")
    if assumptions.framework:
        yield from _framework(assumptions, tensorflow, keras, tools)
    for key, wanted in assumptions.sdk.items():
        yield _sdk(key, wanted, tensorflow, matrix, tools)
    if assumptions.driver is not None:
        yield _driver(assumptions.driver, gpus)
    for name, wanted in assumptions.libraries.items():
        yield _library(name, wanted, libraries, tools, tensorflow)
    if assumptions.image is not None:
        yield _image(assumptions.image, host)


def _framework(
    assumptions: Assumptions, tensorflow: TensorFlowBuild | Unavailable, keras: KerasChoice | Unavailable, tools: _Tools
) -> Iterator[Outcome]:
    wanted = assumptions.framework
    if "tensorflow" in wanted:
        if isinstance(tensorflow, Unavailable):
            yield Unjudged(subject="TensorFlow", reason=tensorflow.unavailable)
        else:
            name = tensorflow.distribution or "tensorflow"
            found = (tensorflow.version or "(not in its metadata)") if tensorflow.installed else None
            remedy, rollback = install_agreed(*tools, {name: wanted["tensorflow"]})
            outcome = judge_version("TensorFlow", found, wanted["tensorflow"], remedy, rollback)
            yield _because_of("versions.tensorflow-installed", outcome)
    if isinstance(keras, Unavailable):
        keys = (key for key in wanted if key != "tensorflow")
        yield from (Unjudged(subject=f"Keras: {key}", reason=keras.unavailable) for key in keys)
        return
    if "keras" in wanted:
        remedy, rollback = install_agreed(*tools, {keras.package: wanted["keras"]})
        yield judge_version("Keras", keras.version, wanted["keras"], remedy, rollback)
    if "flavour" in wanted:
        unset, export = (set_variable("TF_USE_LEGACY_KERAS", value) for value in (None, "1"))
        commands = (unset, export) if wanted["flavour"] == "keras" else (export, unset)
        yield _same("Keras: flavour", keras.package, wanted["flavour"], commands)
    if "backend" in wanted:
        recorded = keras.backend if keras.backend_from == "KERAS_BACKEND" else None
        there, back = (set_variable("KERAS_BACKEND", value) for value in (wanted["backend"], recorded))
        yield _same("Keras: backend", keras.backend, wanted["backend"], (there, back))


def _same(subject: str, found: str, wanted: str, commands: tuple[str, str]) -> Outcome:
    return (
        Evidence(subject=subject, observed=found) if found == wanted else other_value(subject, found, wanted, commands)
    )


def _sdk(
    key: str, wanted: str, tensorflow: TensorFlowBuild | Unavailable, matrix: VersionMatrix, tools: _Tools
) -> Outcome:
    subject = {"cuda": "CUDA SDK", "cudnn": "cuDNN SDK"}[key]
    if isinstance(tensorflow, Unavailable):
        return Unjudged(subject=subject, reason=tensorflow.unavailable)
    if tensorflow.installed and tensorflow.cuda_build is None:
        reason = tensorflow.unreadable or "TensorFlow's files do not state what it was built with"
        return Unjudged(subject=subject, reason=reason)
    remedy = Remedy.reinstall(
        f"Install a TensorFlow that was built with it (kdoctor matrix lists them), {OR_AGREE}", look=("kdoctor matrix",)
    )
    rollback = restore(*tools, tensorflow.distribution or "tensorflow")
    if not tensorflow.cuda_build:
        observed = "TensorFlow was built without CUDA" if tensorflow.installed else "TensorFlow is not installed"
        missing = ("versions.tensorflow-installed", "versions.cuda-build")
        return Finding(
            subject=subject, observed=observed, expected=wanted, remedy=remedy, rollback=rollback, explained_by=missing
        )
    release = release_of(tensorflow, matrix)
    cudnn = (release.cudnn if release else None) or tensorflow.cudnn_version
    found = cuda_of(tensorflow, matrix) if key == "cuda" else cudnn
    if found is None:
        return Unjudged(subject=subject, reason="neither the build nor the version matrix states it")
    specifiers = parse_specifiers(wanted)
    if specifiers and len({meets(version, specifiers) for version in _possible(found, specifiers)}) > 1:
        return Unjudged(subject=subject, reason=f"only {found} is known, which does not decide {wanted}")
    return judge_version(subject, found, wanted, remedy, rollback)


def _possible(found: str, specifiers: SpecifierSet) -> set[Version]:
    """The versions that this may be: if only a major is known, every release of it that the specifiers distinguish."""
    version = parse_version(found)
    if version is None or len(version.release) > 1:
        return {version} if version else set()
    major = version.major
    named = {Version(text) for text in re.findall(rf"(?<![\d.]){major}\.\d+(?:\.\d+)*", str(specifiers))}
    return {Version(f"{major}.0"), Version(f"{major}.99999"), *named}


def _driver(wanted: str, gpus: Gpus | Unavailable) -> Outcome:
    subject = "NVIDIA driver"
    if isinstance(gpus, Unavailable):
        return Unjudged(subject=subject, reason=gpus.unavailable)
    found = gpus.driver_version
    if found is None and gpus.state not in ("library-absent", "driver-not-loaded"):
        reason = gpus.error or gpus.errors.get("driver_version") or f"NVML: {gpus.state}"
        return Unjudged(subject=subject, reason=f"its version was not read ({reason})")
    remedy = Remedy.reboot(
        "Install the agreed driver version while no job is running and restart (for a container, on the host), "
        f"{OR_AGREE}",
        *(upgrade_driver(named[0]) if (named := re.findall(r"(?:==|>=|~=)\s*(\d[\d.]*)", wanted)) else ()),
        look=("apt-cache policy 'nvidia-driver-*'",),
    )
    rollback = previous_driver(found) if found else Rollback.nothing("not needed (no driver was installed)")
    return _because_of("driver.loaded", judge_version(subject, found, wanted, remedy, rollback))


def _because_of(check_id: str, outcome: Outcome) -> Outcome:
    return replace(outcome, explained_by=(check_id,)) if isinstance(outcome, Finding) else outcome


def _library(
    name: str, wanted: str, libraries: Libraries | Unavailable, tools: _Tools, tensorflow: TensorFlowBuild | Unavailable
) -> Outcome:
    if isinstance(libraries, Unavailable):
        return Unjudged(subject=name, reason=libraries.unavailable)
    library = libraries.find(name)
    subject = (library.soname if library else None) or name
    wheel = _wheel(library, tensorflow) if library else None
    if wheel:
        # The version of a wheel has one more number, which counts its builds.
        remedy, rollback = install_agreed(*tools, {wheel: re.sub(r"==\s*([\d.]*\d)(?=,|$)", r"==\1.*", wanted)})
    else:
        rollback = READ_ONLY
        remedy = Remedy.reinstall(
            f"Find out where the loader finds it and install the agreed version there, {OR_AGREE}",
            look=(f"ldconfig -p | grep {quoted(f'lib{name}')}",),
        )
    if library is None or library.status == "missing":
        observed = (libraries.note if library is None else None) or "the loader does not find it"
        return Finding(
            subject=subject,
            observed=observed,
            brief=first_short(observed, "the loader does not find it"),
            expected=wanted,
            remedy=remedy,
            rollback=rollback,
            explained_by=("versions.cuda-libraries", "versions.cuda-build"),
        )
    if library.version is None:
        reason = library.version_error or library.load_error or f"{library.status}, but its version is unknown"
        return Unjudged(subject=subject, reason=reason)
    return judge_version(subject, library.version, wanted, remedy, rollback)


def _wheel(library: Library, tensorflow: TensorFlowBuild | Unavailable) -> str | None:
    """The wheel that has the library, or that would have a missing one; None if it belongs to the system."""
    if library.package or library.status != "missing" or isinstance(tensorflow, Unavailable):
        return library.package
    # The names of the wheels for CUDA 13 follow no common pattern.
    is_cuda_12 = (tensorflow.cuda_version or "").startswith("12.")
    return f"nvidia-{WHEELS[library.name]}-cu12" if is_cuda_12 and library.name in WHEELS else None


def _image(wanted: str, host: Host | Unavailable) -> Outcome:
    subject = "container image"
    if isinstance(host, Unavailable):
        return Unjudged(subject=subject, reason=host.unavailable)
    if host.image is None:
        return Unjudged(subject=subject, reason="its name is unknown; set KDOCTOR_IMAGE where the container is started")
    observed = f"{host.image} ({host.image_from})"
    if fnmatchcase(host.image, wanted):
        return Evidence(subject=subject, observed=observed)
    return Finding(
        subject=subject,
        observed=observed,
        brief=first_short(f"{host.image}, the checklist expects {wanted}", "not the image in the checklist"),
        expected=wanted,
        remedy=Remedy.configure(
            f"Start the job's container from the agreed image, {OR_AGREE}",
            f"docker run --gpus all -e KDOCTOR_IMAGE={quoted(wanted)} {quoted(wanted)} '<command>'",
        ),
        rollback=NEW_CONTAINER,
    )
