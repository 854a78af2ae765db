"""The checks of the installed packages, of Python, and of what a checklist expects of them."""

from dataclasses import replace
from typing import Any

from helpers.facts import PYTHON, cpu_host, gpus, h100_node, host, keras, package, packages, target, tensorflow
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.rows import Row, fails, judged, passes, skips, table, unknown
from kdoctor.facts import (
    FactGroup,
    Gpus,
    Host,
    KerasChoice,
    Libraries,
    Package,
    PackageFault,
    Packages,
    Target,
    TensorFlowBuild,
    Unavailable,
)
from kdoctor.model import Assumptions, Severity

INSTALL, UNINSTALL = f"{PYTHON} -m pip install", f"{PYTHON} -m pip uninstall -y"
NIGHTLY = tensorflow(distribution="tf-nightly")
ABSENT = TensorFlowBuild(installed=False)
NUMPY = packages(package("numpy", "2.4.6"))
CORE = package("tensorflow", "2.21.0")
FACTS = (tensorflow(), target())


def of(*names: str) -> Packages:
    return packages(*(package(name, "2.21.0") for name in names))


def dead(ended_by: str = "") -> dict[type[FactGroup], Unavailable]:
    """Of an interpreter that ended at its start."""
    reason = Unavailable(unavailable="status 1 at its start", interpreter=PYTHON, ended_by=ended_by)
    return dict.fromkeys((Target, Packages, TensorFlowBuild), reason)


test_tensorflow_installed = table(
    "versions.tensorflow-installed",
    Severity.ERROR,
    passes(
        tensorflow(distribution=None),
        briefs=["TensorFlow 2.21.0"],
        said={"tensorflow in /opt/job": "tensorflow 2.21.0"},
    ),
    fails(
        ABSENT, NUMPY, "CUDA", commands=(f"{INSTALL} 'tensorflow[and-cuda]'",), rollback=(f"{UNINSTALL} tensorflow",)
    ),
    *(
        fails(ABSENT, NUMPY, target(platform=platform), commands=(f"{INSTALL} tensorflow",))
        for platform in ("linux-aarch64", "macosx-14.0-arm64")  # for which there are no CUDA libraries
    ),
    fails(
        ABSENT,
        NUMPY,
        target(executable="/usr/bin/python3", externally_managed=True),
        commands=(
            "/usr/bin/python3 -m venv .venv",
            ".venv/bin/python -m pip install 'tensorflow[and-cuda]'",
            "kdoctor check --python .venv",
        ),
        rollback=(),  # a folder of that name may have been there
    ),
    fails(ABSENT, of("tensorflow"), commands=(f"{INSTALL} --force-reinstall --no-deps tensorflow==2.21.0",)),
    *(unknown(tensorflow(version=version)) for version in (None, "", "2.21.0-final-really")),
    unknown(tensorflow(version="two"), "has version 'two'"),
    unknown(tensorflow(version=None, unreadable="gone"), "has no version in its metadata: gone"),
    unknown(tensorflow(version=None, location=None), "the package has no version"),
    *(unknown(group) for group in (TensorFlowBuild, Packages, Target)),
    unknown({TensorFlowBuild: Unavailable(unavailable="gone")}, "gone"),
    fails(dead(), "status 1 at its start", of=["Python"], commands=(), look=(f"{PYTHON} -c pass",)),
    fails(
        dead("/opt/job/site/my sitecustomize.py"),
        commands=("mv '/opt/job/site/my sitecustomize.py' '/opt/job/site/my sitecustomize.py.unused'",),
        rollback=("mv '/opt/job/site/my sitecustomize.py.unused' '/opt/job/site/my sitecustomize.py'",),
    ),
    given=(*FACTS, packages()),
)


def overwritten(brief: str, wanted: str, *names: str, copies: int = 1) -> Row:
    """The installed distribution is kept, and each copy of the others removed."""
    loop = f"for copy in {' '.join(map(str, range(1, copies + 1)))}; do " if copies > 1 else f"{UNINSTALL} "
    return fails(NIGHTLY, of(*names), f"  {brief}", f"; {loop}", f"; {INSTALL} {wanted}.")


OUTER = package("tensorflow", "2.15.1", 'tensorflow-intel==2.15.1; platform_system == "Windows"', "not a ( one")
REQUIRED = package("tensorflow", "2.15.1", "not a ( one", "tensorflow-intel==2.15.1")
INTEL = package("tensorflow-intel", "2.15.1", "tensorflow")

test_one_tensorflow = table(
    "versions.one-tensorflow",
    Severity.ERROR,
    passes(of("tensorflow"), said={"tensorflow": "the only TensorFlow distribution (tensorflow 2.21.0)"}),
    fails(
        packages(CORE, package("tensorflow-cpu", "2.20.0")),
        ": 2 ",
        ": tensorflow 2.21.0, tensorflow-cpu 2.20.0.",
        of=["tensorflow and tensorflow-cpu"],
        commands=(f"{UNINSTALL} tensorflow tensorflow-cpu", f"{INSTALL} tensorflow==2.21.0"),
        rollback=(f"{INSTALL} tensorflow==2.21.0 tensorflow-cpu==2.20.0",),
    ),
    fails(  # leftovers of an earlier installation: pip removes one copy at a time
        packages(CORE, package("tensorflow", "2.19.1")),
        of=["tensorflow"],
        commands=(f"for copy in 1 2; do {UNINSTALL} tensorflow; done", f"{INSTALL} tensorflow==2.21.0"),
    ),
    fails(
        packages(package("nvidia-cudnn-cu12", "9.3.0.75"), CORE, package("tensorflow-cpu", "2.21.0")),
        f"; {INSTALL} 'tensorflow[and-cuda]==2.21.0'.",
    ),
    fails(  # NVML's binding needs no CUDA
        packages(package("nvidia-ml-py", "13.0"), CORE, package("tensorflow-cpu", "2.21.0")),
        f"; {INSTALL} tensorflow==2.21.0.",
    ),
    overwritten("2 TensorFlows, which overwrite", "tensorflow==2.21.0", "tensorflow", "tensorflow-cpu"),
    overwritten("2 TensorFlows, which overwrite", "tf-nightly==2.21.0", "tf-nightly", "tensorflow-cpu"),
    overwritten("3 copies are installed", "tensorflow==2.21.0", *["tensorflow"] * 3, copies=3),
    overwritten("3 TensorFlows, which", "tensorflow==2.21.0", *["tensorflow"] * 2, "tensorflow-cpu", copies=2),
    # A distribution that another one requires is not a second one.
    passes(packages(OUTER, package("tensorflow-intel", "2.15.1"))),
    passes(
        packages(REQUIRED, INTEL),
        tensorflow(version="2.15.1"),
        "(tensorflow 2.15.1, required by another distribution).",
    ),
    unknown(NUMPY),  # copied, without metadata
    given=FACTS,
)


def supported(row: Any, python: str, wanted: str | None = None, *given: Any, **stated: Any) -> Row:
    result: Row = row(target(version=python), Assumptions(python=wanted), *given, **stated)
    return result


ACCEPTS_310 = packages(package("tensorflow", "2.21.0", requires_python=">=3.10"))
OLD_FOLDERS = (("venv", "/opt/job-py3.13"), ("conda", "/opt/job-py3.13"), ("system", "venv-py3.13"))
BY_CHECKLIST = (packages(package("numpy")), ABSENT)
NEW = "/opt/job-py3.13/bin/python"

test_python_supported = table(
    "versions.python-supported",
    Severity.ERROR,
    supported(passes, "3.11.7"),
    supported(passes, "3.10.0"),
    supported(passes, "3.13.1", ">=3.10,<3.14"),
    supported(fails, "3.14.0", ">=3.10,<3.14"),
    supported(passes, "3.14.0rc2", ">=3.10"),
    supported(passes, "3.11.7+local", ">=3.10"),
    supported(unknown, "3.11.7", "three"),
    supported(unknown, "unknown"),
    fails(
        target(version="3.9.18"),
        f"fail Python 3.9.18: not supported by tensorflow 2.21.0 ({PYTHON}).",
        "Expected: Python >=3.10",
        rollback=(),
        commands=(  # TensorFlow 2.21 has wheels for Python 3.10 to 3.13
            "uv venv --python 3.13 /opt/job-py3.13",
            f"uv pip install --python {NEW} tensorflow==2.21.0",
            f"kdoctor check --python {NEW}",
        ),
    ),
    *(
        fails(target(version="3.9.18", environment=where), f"; uv venv --python 3.13 {folder};")
        for where, folder in OLD_FOLDERS
    ),
    supported(fails, "3.11.7", "<3.9", "Fix: ", "<3.9", "Python 3.11.7 meets >=3.10.", commands=()),
    fails(
        target(version="3.11.7"),
        packages(package("tf-nightly", "2.21.0", requires_python=">=3.13"), package("tensorflow", "2.15.0")),
        NIGHTLY,
        "tf-nightly 2.21.0",
        "Python 3.13",
    ),
    unknown(packages(CORE)),
    supported(skips, "3.9.18", None, *BY_CHECKLIST),
    supported(fails, "3.9.18", ">=3.10", *BY_CHECKLIST),
    supported(passes, "3.9.18", ">=3.9", *BY_CHECKLIST),
    given=(*FACTS, ACCEPTS_310),
)


def expecting(version: str | None, wanted: str) -> tuple[Any, ...]:
    return packages(package("tensorflow", version)), Assumptions(packages={"tensorflow": wanted})


test_packages_expected = table(
    "versions.packages-expected",
    Severity.ERROR,
    passes(*expecting("2.21.0rc1", ">=2.20")),
    fails(
        *expecting("2.22.0", "~=2.21.0"),
        commands=(f"{INSTALL} 'tensorflow~=2.21.0'",),
        rollback=(f"{INSTALL} tensorflow==2.22.0",),
    ),
    *(unknown(*expecting(version, "~=2.21.0")) for version in (None, "custom")),
    unknown(*expecting("2.21.0", "two")),
    fails(Assumptions(packages={"Horovod": ">=0.28", "ML_dtypes": ">=0.5"}), "pass ML_dtypes: ", of=["Horovod"]),
    fails(  # one command for all, so that one fix is printed
        Assumptions(packages={"tensorflow": "<2.21", "numpy": "<2"}),
        packages(CORE, package("numpy", "2.4.6")),
        commands=(f"{INSTALL} 'tensorflow<2.21' 'numpy<2'",),
        rollback=(f"{INSTALL} tensorflow==2.21.0 numpy==2.4.6",),
        of=["tensorflow", "numpy"],
    ),
    skips(),
    given=(*FACTS, packages()),
)


def root(*requires: str) -> Package:
    return package("tensorflow", "2.21.0", *requires)


def with_numpy(*requires: str, numpy: str | None = "2.4.6", others: Any = ()) -> Packages:
    return packages(root(*requires), package("numpy", numpy), *others)


LEGACY = keras(package="tf-keras", version="2.20.0", legacy=True)
LEGACY_2_20 = package("tf-keras", "2.20.0", "tensorflow<2.21,>=2.20")
CLIENT = package("client", "1.0", 'absent; extra == "fast"')
LONG = [f"a-package-with-a-name-that-is-much-too-long-for-one-line-{number}" for number in range(3)]
OWNERS = [package(name, "1.0", "numpy>=99") for name in LONG]
MARKERS = (
    ('python_version < "3.9"', {"version": "3.8.18"}, fails),
    ('python_version < "3.9"', {"version": "3.11.7"}, passes),
    ('python_version < "3.9"', {"version": "3.10.2"}, passes),
    ('python_full_version >= "3.11.7"', {"version": "3.11.7"}, fails),
    ('sys_platform == "win32"', {"platform": "win-amd64"}, fails),
    ('platform_machine == "AMD64"', {"platform": "win-amd64"}, fails),
    ('sys_platform == "win32"', {"platform": "linux-x86_64"}, passes),
    ('sys_platform == "darwin" and platform_machine == "arm64"', {"platform": "macosx-14.0-arm64"}, fails),
    ('platform_machine == "aarch64"', {"platform": "linux-aarch64"}, fails),
    ('platform_system == "Linux"', {"platform": "linux-aarch64"}, fails),
    ('os_name == "nt"', {"platform": "linux-x86_64"}, passes),
    ('platform_python_implementation == "PyPy"', {"implementation": "pypy"}, fails),
    ('implementation_name == "pypy"', {"implementation": "cpython"}, passes),
)
ONE, KERAS_RELEASE = "versions.one-tensorflow", "versions.keras-compatible"
INVALID = packages(root("bad ( core", "numpy"), package("numpy", "2.0"), package("pandas", "2.0", "bad ( other"))

test_package_conflicts = table(
    "versions.package-conflicts",
    Severity.ERROR,
    fails(
        with_numpy("numpy<2.0.0,>=1.23.5", "ml-dtypes", others=[package("ml-dtypes", "0.3.1", "numpy>1.20")]),
        "numpy<2.0.0,>=1.23.5",
        of=["numpy 2.4.6"],
        briefs=["tensorflow 2.21.0 needs >=1.23.5,<2.0.0"],
        commands=(f"{INSTALL} 'numpy>=1.23.5,>1.20,<2.0.0'",),
        rollback=(f"{INSTALL} numpy==2.4.6",),
        explained_by=[ONE],
    ),
    fails(packages(root("numpy>=1.26")), of=["numpy"], briefs=["not installed, but tensorflow 2.21.0 needs >=1.26"]),
    fails(with_numpy("numpy", others=[LEGACY_2_20]), LEGACY, of=["tensorflow 2.21.0"], explained_by=[KERAS_RELEASE]),
    *(row(with_numpy("numpy", f"absent; {marker}"), target(**where)) for marker, where, row in MARKERS),
    fails(packages(root("client[fast]", "client"), CLIENT)),
    *(unknown(with_numpy("numpy>=1.26", numpy=version)) for version in ("unknown", "2.x")),
    unknown(with_numpy("numpy>=1", numpy="new"), "'new' is not valid"),
    unknown(with_numpy("numpy>=1", numpy=None), "has no version"),
    unknown(with_numpy("numpy", "???"), "'???'"),
    fails(with_numpy("not a ( one", "numpy>=99", numpy="2.0"), of=["numpy 2.0"], unjudged=["tensorflow"]),
    unknown(packages(root("not a ( one"), package("keras", "3.15.1")), keras(), of=["tensorflow", "tensorflow"]),
    unknown(INVALID, of=["tensorflow"]),
    unknown(packages(root())),
    unknown(packages(package("numpy", "2.4.6"))),
    passes(packages(root("numpy"), package("numpy", "2.4.6", "tensorflow"))),  # circular
    fails(  # a folder hides one of the two
        replace(
            packages(root("keras>=3.12", "numpy>=2"), package("keras", "3.6.0"), package("numpy", "1.24.4")),
            faults=(PackageFault(package="numpy", version="2.4.6", files=1, file="/job/numpy.py", shadowed=True),),
        ),
        keras(version="3.6.0"),
        of=["keras 3.6.0", "numpy 1.24.4"],
        explained_by=[f"{ONE}, {KERAS_RELEASE}", f"{ONE}, versions.packages-intact"],
    ),
    fails(  # pip resolves both together, and what meets its requirements stays, without a version too
        packages(
            root("numpy>=2", "pytz>1", "six"), package("six", None), package("numpy", "1.0"), package("pytz", "1.0")
        ),
        of=["numpy 1.0", "pytz 1.0"],
        commands=(f"{INSTALL} 'numpy>=2' 'pytz>1'",),
        rollback=(f"{INSTALL} numpy==1.0 pytz==1.0",),
    ),
    fails(with_numpy(*LONG, numpy="2.0", others=OWNERS), "  does not meet the requirements of other packages."),
    fails(packages(root(*LONG), *OWNERS), "  not installed, but required."),
    fails(
        packages(package("tf-nightly", "2.21.0", "numpy>=99"), package("numpy", "2.0"), package("tensorflow", "1.0")),
        NIGHTLY,
        keras(),
        of=["numpy 2.0"],
    ),
    given=(*FACTS, keras(package="tensorflow", version="2.21.0")),
)


def test_reason_of_an_invalid_requirement_is_one_line() -> None:
    result = judged("versions.package-conflicts", with_numpy("not a ( one", "numpy"), *FACTS, keras())
    reason = next(item.reason for item in result.unjudged)
    assert "\n" not in reason
    assert reason.partition("'not a ( one': ")[2].strip(" ^~")


def with_others(*others: Package) -> Packages:
    return packages(root("numpy>=3"), package("keras", "3.15.1", "numpy"), package("numpy", "2.4.6"), *others)


def with_cpu(*others: Package) -> tuple[Any, ...]:
    return tensorflow(distribution="tensorflow-cpu"), packages(package("tensorflow-cpu", "2.21.0"), *others)


def nightly(wanted: str, *others: Package) -> tuple[Any, ...]:
    core = package("tf-nightly", "2.21.0", wanted)
    return NIGHTLY, packages(core, package("numpy", "2.0"), package("tensorflow", "1.0"), *others)


test_other_conflicts = table(
    "versions.other-conflicts",
    Severity.WARNING,
    fails(  # what the job needs stays
        with_others(package("tf-keras", "2.16.0", "tensorflow<2.17,>=2.16")),
        of=["tensorflow 2.21.0"],
        commands=(f"{INSTALL} --upgrade 'tf-keras~=2.21.0' tensorflow==2.21.0",),
        rollback=(f"{INSTALL} tf-keras==2.16.0",),
    ),
    fails(  # with its requirements, tf-keras would bring a second TensorFlow
        *with_cpu(package("tf-keras", "2.16.0", "tensorflow<2.17,>=2.16")),
        of=["tensorflow-cpu 2.21.0"],
        commands=(f"{INSTALL} --no-deps --upgrade 'tf-keras~=2.21.0' tensorflow-cpu==2.21.0",),
    ),
    passes(*with_cpu(package("tf-keras", "2.21.0", "tensorflow<2.22,>=2.21"))),
    passes(with_others(package("pandas", "3.0", "tensorflow", "numpy>=2")), "2 ", "1 "),  # not those of TensorFlow
    skips(with_others()),
    unknown(with_others(package("pandas", "3.0", "pytz>1"), package("pytz", None))),
    unknown(INVALID, of=["pandas"]),
    skips(*nightly("numpy>=99")[:1], packages(package("tf-nightly", "2.21.0", "numpy>=99"), package("numpy", "2.0"))),
    fails(
        *nightly("numpy>=99", package("pandas", "2.0", "numpy>=98", "keras>=99"), package("keras", "3.15.1")),
        of=["keras 3.15.1", "numpy 2.0"],
        explained_by=[f"{KERAS_RELEASE}, versions.package-conflicts", "versions.package-conflicts"],
    ),
    fails(  # goes with the second TensorFlow
        with_others(package("tensorflow-cpu", "2.20.0", "pytz>1")), of=["pytz"], explained_by=[ONE]
    ),
    given=(*FACTS, keras()),
)


def of_runtime(row: Any, *given: Any, **wanted: Any) -> Row:
    result: Row = row(*given, Assumptions(**wanted))
    return result


def sdk(row: Any, build: FactGroup, wanted: str, *texts: str, name: str = "cudnn", **stated: Any) -> Row:
    result: Row = row(build, Assumptions(sdk={name: wanted}), *texts, **stated)
    return result


def unlisted(cudnn: str | None, **changes: Any) -> FactGroup:
    return tensorflow(version="2.99.0", **{"cudnn_version": cudnn, **changes})


def named(**changes: Any) -> Assumptions:
    return Assumptions(framework=changes)


DOCKER = host(container="docker", image="registry.example/train:7", image_from="KDOCTOR_IMAGE")
PLAIN = tensorflow(distribution="tensorflow-cpu", cuda_build=False, cuda_version=None, cudnn_version=None)
LEGACY_KERAS = keras(package="tf-keras", version="2.21.0", legacy=True)
CUDNN_9, DRIVER_500 = Assumptions(libraries={"cudnn": ">=9"}), Assumptions(driver=">=500")
NOT_STATED = "neither the build nor the version matrix states it."


def unread_driver(why: str, error: str | None = None, **errors: str) -> Row:
    found = gpus(driver_version=None, error=error, errors=errors)
    return unknown(found, DRIVER_500, f"its version was not read ({why}).")


def missing_wheel(name: str, cuda: str, *commands: str) -> Row:
    gone = libraries(missing(name, soname=f"lib{name}.so"))
    return fails(gone, tensorflow(cuda_version=cuda), Assumptions(libraries={name: "==11.2"}), commands=commands)


test_runtime_expected = table(
    "versions.runtime-expected",
    Severity.ERROR,
    passes(named(tensorflow="~=2.21.0")),
    passes(named(keras=">=3.15,<4")),
    sdk(passes, tensorflow(), "~=12.5", name="cuda"),
    sdk(fails, tensorflow(), ">=13", name="cuda"),
    of_runtime(passes, driver=">=560"),
    of_runtime(fails, driver="<560"),
    of_runtime(passes, libraries={"cudnn": ">=9.3", "nccl": ">=2.21"}),
    of_runtime(fails, libraries={"cudnn": ">=9.3", "nccl": ">=2.28"}),
    skips(),
    of_runtime(skips, python=">=3.10", packages={"keras": ">=3"}),
    *(
        unknown({group: "it broke"}, assumed, ": it broke.")
        for group, assumed in (
            (TensorFlowBuild, named(tensorflow=">=2")),
            (TensorFlowBuild, Assumptions(sdk={"cuda": ">=12"})),
            (KerasChoice, named(keras=">=3", flavour="keras", backend="tensorflow")),
            (Gpus, DRIVER_500),
            (Libraries, CUDNN_9),
            (Host, Assumptions(image="*")),
        )
    ),
    # A build that states only the major version leaves finer specifiers unknown.
    *(sdk(passes, unlisted("9"), wanted) for wanted in (">=9", ">=8", "<10")),
    sdk(fails, unlisted("9"), ">=10"),
    *(sdk(unknown, unlisted("9"), wanted, wanted) for wanted in (">=9.3", "<9.3", "==9.3.*", "~=9.3", "!=9.1")),
    sdk(fails, unlisted("9.3"), ">=9.5"),
    sdk(passes, unlisted("9.3"), ">=9.2"),
    sdk(unknown, unlisted("new"), ">=9"),
    sdk(unknown, unlisted(None), ">=9", NOT_STATED),
    sdk(unknown, unlisted("9", cuda_version=None), ">=9", NOT_STATED, name="cuda"),
    sdk(fails, PLAIN, ">=12", "fail CUDA SDK: ", "without CUDA", name="cuda"),
    fails(no_libraries(), CUDNN_9, "without CUDA"),
    sdk(
        unknown,
        tensorflow(cuda_build=None, cuda_version=None, unreadable="build_info.py: gone"),
        ">=12",
        name="cuda",
        reason="CUDA SDK: build_info.py: gone",
    ),
    fails(ABSENT, Assumptions(framework={"tensorflow": ">=2"}, sdk={"cuda": ">=12"}), of=["TensorFlow", "CUDA SDK"]),
    fails(*cpu_host(), libraries(), packages(), DRIVER_500, rollback=()),
    unknown(gpus(driver_version=None, errors={"driver_version": "NVML_ERROR_UNKNOWN"}), DRIVER_500),
    unknown(gpus(state="library-mismatch", error="Driver/library mismatch", driver_version=None), DRIVER_500),
    unknown(gpus(driver_version="r570-custom"), DRIVER_500),
    unread_driver("it died", "it died", driver_version="Unknown Error"),
    unread_driver("Unknown Error", driver_version="Unknown Error"),
    unread_driver("NVML: ready"),
    missing_wheel("cufft", "12.5.1", f"{INSTALL} 'nvidia-cufft-cu12==11.2.*'"),
    missing_wheel("cufft", "13.0"),
    missing_wheel("cuda", "12.5.1"),
    unknown(
        libraries(library("cudnn", version=None, version_error="it died")), CUDNN_9, reason="libcudnn.so.9: it died"
    ),
    fails(
        libraries(library("nccl", package=None, package_version=None, path="/usr/lib/libnccl.so.2")),
        Assumptions(libraries={"nccl": ">=3"}),
        look=("ldconfig -p | grep libnccl",),
    ),
    fails(
        Assumptions(libraries={"cudnn": "==9.3.0"}),
        said={"libcudnn.so.9": "version 9.24.0"},
        expected="==9.3.0",
        commands=(f"{INSTALL} 'nvidia-cudnn-cu12==9.3.0.*'",),
    ),
    fails(
        LEGACY_KERAS,
        named(flavour="keras"),
        commands=("unset TF_USE_LEGACY_KERAS",),
        rollback=("export TF_USE_LEGACY_KERAS=1",),
    ),
    fails(
        keras(backend="torch", backend_from="KERAS_BACKEND"),
        named(backend="tensorflow"),
        commands=("export KERAS_BACKEND=tensorflow",),
        rollback=("export KERAS_BACKEND=torch",),
    ),
    of_runtime(passes, DOCKER, image="registry.example/train:*"),
    fails(DOCKER, Assumptions(image="registry.example/train:8"), "registry.example/train:7"),
    unknown(host(container="docker"), Assumptions(image="train:*"), "KDOCTOR_IMAGE"),
    given=(*h100_node(), libraries(), packages(), target()),
)
