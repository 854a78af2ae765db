"""Whether framework, SDK, driver, libraries and container image are those that the checklist was agreed for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Gpus, Host, KerasChoice, Libraries, Library, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.facts.libraries import WHEELS
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import (
    Action,
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
from kdoctor_checks._versions import meets, parse_specifiers, parse_version
from kdoctor_checks.versions._drivers import previous_driver

_OR_AGREE = "or agree on what is here: change the checklist and review it."


@check(
    "versions.runtime-expected",
    severity=Severity.ERROR,
    judges=("framework", "sdk", "driver", "libraries", "image"),
)
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
    """Framework, SDK, driver, libraries and container image are those that the checklist names.

    Why: the checklist was agreed, and the job tested, with these. Another driver, another cuDNN that the loader finds
    first, or another backend is another job, though no package changed.
    Remedy: install or choose what was agreed, or agree on the new one in the checklist.
    Sources:
        https://packaging.python.org/en/latest/specifications/version-specifiers/
        https://keras.io/getting_started/#configuring-your-backend
        https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    tools = _Tools(target=target, packages=packages)
    if not {"framework", "sdk", "driver", "libraries", "image"} & assumptions.stated():
        yield NotApplicable(reason="the checklist names no framework, SDK, driver, library or image")
    if assumptions.framework:
        yield from _framework(assumptions, tensorflow, keras, tools)
    if assumptions.sdk:
        yield from _sdk(assumptions, tensorflow, matrix, tools)
    if assumptions.driver is not None:
        yield _driver(assumptions.driver, gpus)
    for name, wanted in assumptions.libraries.items():
        yield _library(name, wanted, libraries, tools, tensorflow)
    if assumptions.image is not None:
        yield _image(assumptions.image, host)


@dataclass(frozen=True, kw_only=True)
class _Tools:
    """What commands are made of."""

    target: Target
    packages: Packages

    def remedy(self, name: str, wanted: str) -> Remedy:
        return Remedy(
            summary=f"Install the agreed version, {_OR_AGREE}",
            action=Action.REINSTALL,
            commands=(install(self.target, self.packages, f"{name}{wanted}"),),
        )

    def back(self, name: str) -> Rollback:
        return restore(self.target, self.packages, name)


def _framework(
    assumptions: Assumptions, tensorflow: TensorFlowBuild | Unavailable, keras: KerasChoice | Unavailable, tools: _Tools
) -> Iterator[Outcome]:
    wanted = assumptions.framework
    if "tensorflow" in wanted:
        if isinstance(tensorflow, Unavailable):
            yield Unjudged(subject="TensorFlow", reason=tensorflow.unavailable)
        else:
            name = tensorflow.distribution or "tensorflow"
            found = (tensorflow.version or "of no version in its metadata") if tensorflow.installed else None
            remedy = tools.remedy(name, wanted["tensorflow"])
            yield _version("TensorFlow", found, wanted["tensorflow"], remedy, tools.back(name))
    if isinstance(keras, Unavailable):
        yield from (
            Unjudged(subject=f"Keras: {key}", reason=keras.unavailable) for key in wanted if key != "tensorflow"
        )
        return
    if "keras" in wanted:
        remedy = tools.remedy(keras.package, wanted["keras"])
        yield _version("Keras", keras.version, wanted["keras"], remedy, tools.back(keras.package))
    if "flavour" in wanted:
        way = ("unset TF_USE_LEGACY_KERAS", "export TF_USE_LEGACY_KERAS=1")
        there, back = way if wanted["flavour"] == "keras" else reversed(way)
        yield _same("Keras: flavour", keras.package, wanted["flavour"], there, back)
    if "backend" in wanted:
        back = "unset KERAS_BACKEND"
        if keras.backend_from == "KERAS_BACKEND":
            back = f"export KERAS_BACKEND={shlex.quote(keras.backend)}"
        there = f"export KERAS_BACKEND={shlex.quote(wanted['backend'])}"
        yield _same("Keras: backend", keras.backend, wanted["backend"], there, back)


def _same(subject: str, found: str, wanted: str, there: str, back: str) -> Outcome:
    if found == wanted:
        return Evidence(subject=subject, observed=found)
    return Finding(
        subject=subject,
        observed=found,
        expected=wanted,
        remedy=Remedy(
            summary=f"Choose it in the script or the unit that starts the job, {_OR_AGREE}",
            action=Action.CONFIGURE,
            commands=(there,),
        ),
        rollback=Rollback.to("the recorded choice", back),
    )


def _sdk(
    assumptions: Assumptions, tensorflow: TensorFlowBuild | Unavailable, matrix: VersionMatrix, tools: _Tools
) -> Iterator[Outcome]:
    titles = {"cuda": "CUDA SDK", "cudnn": "cuDNN SDK"}
    for key, wanted in assumptions.sdk.items():
        if isinstance(tensorflow, Unavailable):
            yield Unjudged(subject=titles[key], reason=tensorflow.unavailable)
        elif tensorflow.installed and tensorflow.cuda_build is None:
            reason = tensorflow.unreadable or "TensorFlow's files do not say what it was built for"
            yield Unjudged(subject=titles[key], reason=reason)
        else:
            yield _built_against(titles[key], _release(key, tensorflow, matrix), wanted, tensorflow, tools)


def _release(key: str, tensorflow: TensorFlowBuild, matrix: VersionMatrix) -> str | None:
    """The release of CUDA or cuDNN that TensorFlow was built against; None where nobody says."""
    if key == "cuda":
        return cuda_of(tensorflow, matrix)
    release = release_of(tensorflow, matrix)
    return (release.cudnn if release else None) or tensorflow.cudnn_version


def _built_against(subject: str, found: str | None, wanted: str, tensorflow: TensorFlowBuild, tools: _Tools) -> Outcome:
    remedy = Remedy(
        summary=f"Install a TensorFlow that was built against it (kdoctor matrix shows which), {_OR_AGREE}",
        action=Action.REINSTALL,
        commands=("kdoctor matrix",),
    )
    back = tools.back(tensorflow.distribution or "tensorflow")
    if not tensorflow.cuda_build:
        observed = "TensorFlow was built without CUDA" if tensorflow.installed else "no TensorFlow is installed"
        return Finding(subject=subject, observed=observed, expected=wanted, remedy=remedy, rollback=back)
    if found is None:
        return Unjudged(subject=subject, reason="neither the build nor the version matrix states it")
    return _version(subject, found, wanted, remedy, back)


def _version(subject: str, found: str | None, wanted: str, remedy: Remedy, back: Rollback) -> Outcome:
    specifiers, version = parse_specifiers(wanted), parse_version(found)
    if specifiers is None:
        return Unjudged(subject=subject, reason=f"the checklist's {wanted!r} is no version specifier")
    if found is not None and version is None:
        return Unjudged(subject=subject, reason=f"its version is {found!r}, which cannot be compared")
    if version is not None:
        answers = {meets(possible, specifiers) for possible in _possible(version, specifiers)}
        if answers == {True}:
            return Evidence(subject=subject, observed=f"{found} ({wanted})")
        if True in answers:
            return Unjudged(subject=subject, reason=f"only {found} is stated, which does not decide {wanted}")
    return Finding(subject=subject, observed=found or "not there", expected=wanted, remedy=remedy, rollback=back)


def _possible(version: Version, specifiers: SpecifierSet) -> set[Version]:
    """What a version may be: where only a major is stated, any release of it that the specifiers could tell apart."""
    if len(version.release) > 1:
        return {version}
    major = version.major
    named = {Version(text) for text in re.findall(rf"(?<![\d.]){major}\.\d+(?:\.\d+)*", str(specifiers))}
    return {Version(f"{major}.0"), Version(f"{major}.99999"), *named}


def _driver(wanted: str, gpus: Gpus | Unavailable) -> Outcome:
    subject = "NVIDIA driver"
    if isinstance(gpus, Unavailable):
        return Unjudged(subject=subject, reason=gpus.unavailable)
    if gpus.driver_version is None and gpus.state not in ("library-absent", "driver-not-loaded"):
        reason = gpus.errors.get("driver_version") or f"NVML: {gpus.state}"
        return Unjudged(subject=subject, reason=f"its version was not read ({gpus.error or reason})")
    found = gpus.driver_version
    remedy = Remedy(
        summary=f"Install a driver of the agreed version when no job runs, and restart (on the host, if this is a "
        f"container), {_OR_AGREE}",
        action=Action.REBOOT,
        commands=("apt-cache policy 'nvidia-driver-*'", "sudo apt-get install 'nvidia-driver-<branch>=<version>*'"),
    )
    back = previous_driver(found) if found else Rollback.nothing("there was no driver")
    return _version(subject, found, wanted, remedy, back)


def _library(
    name: str,
    wanted: str,
    libraries: Libraries | Unavailable,
    tools: _Tools,
    tensorflow: TensorFlowBuild | Unavailable,
) -> Outcome:
    if isinstance(libraries, Unavailable):
        return Unjudged(subject=name, reason=libraries.unavailable)
    library = libraries.find(name)
    subject = (library.soname if library else None) or name
    package = _wheel(library, tensorflow) if library else None
    remedy = tools.remedy(package, _of_wheel(wanted)) if package else Remedy(
        summary=f"See where the loader takes it from, and put the agreed version there, {_OR_AGREE}",
        action=Action.REINSTALL,
        commands=(f"ldconfig -p | grep lib{name}",),
    )  # fmt: skip
    back = tools.back(package) if package else Rollback.nothing("looking changes nothing")
    if library is None or library.status == "missing":
        observed = libraries.note or "the loader finds none" if library is None else "the loader finds none"
        return Finding(subject=subject, observed=observed, expected=wanted, remedy=remedy, rollback=back)
    if library.version is None:
        reason = library.version_error or library.load_error or f"{library.status}, of a version that it does not say"
        return Unjudged(subject=subject, reason=reason)
    return _version(subject, library.version, wanted, remedy, back)


def _wheel(library: Library, tensorflow: TensorFlowBuild | Unavailable) -> str | None:
    """The wheel that brings the library, or that would bring it where it is missing; None where it is the system's."""
    if library.package or library.status != "missing" or isinstance(tensorflow, Unavailable):
        return library.package
    # The wheels of CUDA 13 have no common form of name.
    of_cuda_12 = (tensorflow.cuda_version or "").startswith("12.")
    return f"nvidia-{WHEELS[library.name]}-cu12" if of_cuda_12 and library.name in WHEELS else None


def _of_wheel(wanted: str) -> str:
    """The specifier for the wheel, whose version counts its builds in a further number."""
    return re.sub(r"==\s*([\d.]*\d)(?=,|$)", r"==\1.*", wanted)


def _image(wanted: str, host: Host | Unavailable) -> Outcome:
    subject = "container image"
    if isinstance(host, Unavailable):
        return Unjudged(subject=subject, reason=host.unavailable)
    if host.image is None:
        reason = "nothing here names it: set KDOCTOR_IMAGE to its name where the container is started"
        return Unjudged(subject=subject, reason=reason)
    observed = f"{host.image} ({host.image_from})"
    if fnmatchcase(host.image, wanted):
        return Evidence(subject=subject, observed=observed)
    return Finding(
        subject=subject,
        observed=observed,
        expected=wanted,
        remedy=Remedy(
            summary=f"Start the job's container from the agreed image, {_OR_AGREE}",
            action=Action.CONFIGURE,
            commands=(
                f"docker run --gpus all -e KDOCTOR_IMAGE={shlex.quote(wanted)} {shlex.quote(wanted)} '<command>'",
            ),
        ),
        rollback=Rollback.nothing("a container is started anew; nothing on the host changes"),
    )
