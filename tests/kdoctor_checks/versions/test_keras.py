"""The checks of Keras, and of combinations of versions that are known to be bad."""

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from helpers.cases import cases
from helpers.facts import PYTHON, environment, gpu, gpus, h100_node, keras, package, packages, target, tensorflow
from helpers.facts.libraries import libraries, library
from helpers.rows import Row, fails, judged, passes, table, unknown
from kdoctor.facts import FactGroup, KerasChoice, Packages, TensorFlowBuild
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Action, Assumptions, Finding, GpuAssumption, Severity

INSTALL = f"{PYTHON} -m pip install"
NODE = h100_node(1)


def with_rows(text: str) -> VersionMatrix:
    return loads(shipped_text() + text.encode())


def installed(version: str | None, name: str = "keras", release: str = "2.18.1") -> Packages:
    return packages(package("tensorflow", release), *([package(name, version)] if version else []))


def chosen(version: str, **changes: Any) -> tuple[FactGroup, ...]:
    """A Keras, and its package."""
    found = keras(version=version, **changes)
    return found, installed(version, found.package)


def wrong(version: str, defect: str) -> Row:
    return fails(
        *chosen(version),
        f"fail keras {version}: ",
        defect,
        commands=(f"{INSTALL} 'keras>=3.10'",),
        rollback=(f"{INSTALL} keras=={version}",),
    )


def legacy(version: str | None, **changes: Any) -> tuple[FactGroup, ...]:
    return keras(package="tf-keras", version=version, legacy=True, **changes), installed(version, "tf-keras")


BAD_KERAS = """
- id: odd_keras
  when: {{keras: "=={keras}"{more}}}
  effect: {effect}
  symptom: it trains incorrectly
  ended_by: {{keras: ">=9"}}
  fix: keras 9
  source: seen here
"""


def odd(keras: str = "3.15.1", effect: str = "wrong-results", more: str = "") -> VersionMatrix:
    return with_rows(BAD_KERAS.format(keras=keras, effect=effect, more=more))


TURNED = replace(shipped_matrix(), keras_releases=shipped_matrix().keras_releases[::-1])
NOT_AVERAGED = ("3.5.0", "3.7.0")

test_keras_compatible = table(
    "versions.keras-compatible",
    Severity.ERROR,
    # as measured: gradients not reduced, gradients summed, metrics wrong, correct
    *(wrong(version, "are not summed") for version in ("3.0.0", "3.2.1", "3.4.1")),
    *(wrong(version, "summed instead of averaged") for version in NOT_AVERAGED),
    *(wrong(version, "metrics") for version in ("3.8.0", "3.9.2")),
    *(passes(*chosen(version)) for version in ("3.10.0", "2.15.0")),
    passes(*chosen("3.15.1"), "pass keras: version 3.15.1. Keras 3.15.1."),
    fails(
        keras(version="3.6.0"),
        packages(package("tensorflow", "2.15.1", "keras<2.16,>=2.15.0"), package("keras", "3.6.0")),
        commands=(f"{INSTALL} 'keras>=2.15.0,<2.16'",),  # what this TensorFlow accepts, and no defect
    ),
    unknown(*chosen("not a version")),
    fails(*chosen("3.6.0rc1"), commands=(f"{INSTALL} 'keras>=3.10'",)),
    # 3.4.1 and 3.6.0 were measured, and so was 3.15.1, the newest.
    fails(*chosen("3.5.0rc1"), commands=(f"{INSTALL} keras==3.15.1",), unsaid="wrong results"),
    fails(*chosen("3.5.0rc1"), TURNED, commands=(f"{INSTALL} keras==3.15.1",)),
    fails(*chosen("3.5.0rc1"), "  does not train as one device on several replicas."),
    fails(
        *chosen("3.9.2"),  # the fix is the release that ends all of its defects
        replace(odd("3.9.2"), known_bad=odd("3.9.2").known_bad[::-1]),
        "it trains incorrectly",
        "  gives wrong results on several replicas.",
        commands=(f"{INSTALL} 'keras>=9'",),
    ),
    passes(keras(), odd(more=', tensorflow: "==2.21.0"')),
    fails(
        *legacy(None),
        "fail tf-keras: not installed, although TF_USE_LEGACY_KERAS is set.",
        "Fix: Install tf-keras, or unset TF_USE_LEGACY_KERAS",
        commands=(f"{INSTALL} 'tf-keras~=2.18.0'",),
        rollback=(f"{PYTHON} -m pip uninstall -y tf-keras",),
    ),
    passes(*legacy("2.18.0"), "pass tf-keras: version 2.18.0 (TF_USE_LEGACY_KERAS is set). tf-keras 2.18.0."),
    fails(
        *legacy("2.19.0"),
        "fail tf-keras 2.19.0: ",
        " 2.18",
        commands=(f"{INSTALL} 'tf-keras~=2.18.0'",),
        rollback=(f"{INSTALL} tf-keras==2.19.0",),
    ),
    fails(keras(version=None), installed(None), "fail keras: not installed.", "Fix: Install keras.;"),
    fails(
        keras(version=None, legacy=True),
        *(installed(None), "not installed, although TF_", "Fix: Install tf-keras, or unset TF_"),
        commands=(f"{INSTALL} keras",),
    ),
    fails(
        keras(package="tf-keras", version=None),
        *(installed(None), "fail tf-keras: not installed.", "Fix: Install tf-keras.;"),
        commands=(f"{INSTALL} 'tf-keras~=2.18.0'",),
    ),
    passes(*chosen("2.15.0", legacy=True), "2.15.0 (TF_USE_LEGACY_KERAS is set)"),
    unknown(keras(version=None), packages(package("keras", None))),
    unknown(keras(package="tf-keras", version=None, legacy=True), packages(package("tf-keras", None))),
    *(
        fails(keras(backend="jax", backend_from=origin), ": jax", origin, rollback=(back,))
        for origin, back in (("KERAS_BACKEND", "export KERAS_BACKEND=jax"), ("keras.json", "unset KERAS_BACKEND"))
    ),
    passes(keras(backend_from="KERAS_BACKEND"), "pass Keras backend: tensorflow (KERAS_BACKEND)."),
    # The release in the checklist is the better fix.
    *(
        fails(*chosen("3.6.0"), Assumptions(packages=wanted), explained_by=[explained])
        for wanted, explained in (
            ({"keras": "==3.15.1"}, "versions.packages-expected"),
            ({"keras": ">=3.6"}, ""),
            ({}, ""),
        )
    ),
    given=(packages(), target()),
)


def finding(*facts: FactGroup) -> Finding:
    return judged("versions.keras-compatible", target(), *facts).findings[0].finding


@cases(
    ("3.4.1", "job.*"),
    ("3.6.0", "job.*"),
    ("3.7.0", "job.*"),
    ("3.8.0", "job.reported-loss"),  # trains correctly and reports wrong losses
    ("3.9.0rc1", "job.reported-loss"),
    ("3.9.2", "job.reported-loss"),
)
def test_release_explains_what_it_gets_wrong(version: str, last: str) -> None:
    found = finding(*chosen(version))
    explained = ("versions.package-conflicts", "smoke.baseline", "job.reported-loss")
    assert all(any(fnmatchcase(check_id, pattern) for pattern in found.explains) for check_id in explained)
    assert any(fnmatchcase("job.equals-one-device", pattern) for pattern in found.explains) is (last == "job.*")
    assert found.explains[-1] == last


def test_backend_explains_trainings_but_no_package() -> None:
    found = finding(*chosen("3.15.1", backend="jax", backend_from="KERAS_BACKEND"))
    assert not any(fnmatchcase("versions.package-conflicts", pattern) for pattern in found.explains)
    assert any(fnmatchcase("smoke.baseline", pattern) for pattern in found.explains)


def with_numpy(
    release: str, numpy: str | None, name: str = "tensorflow", requirement: str = "numpy"
) -> tuple[Any, ...]:
    core = package(name, release, requirement)
    build = tensorflow(distribution=name, version=release)
    return build, packages(core, *([package("numpy", numpy)] if numpy else []))


OUR_OWN = """
- id: our_own
  when: {tensorflow: "==2.21.0", h5py: "<3.12"}
  effect: crash
  symptom: our models do not load
  fix: h5py 3.12 or newer
  source: seen here
"""
NO_VERSION = {"tensorflow (version unknown)": "its version is not valid"}

test_known_bad = table(
    "versions.known-bad",
    Severity.ERROR,
    *(fails(*with_numpy(release, numpy)) for release, numpy in (("2.10.1", "2.0.2"), ("2.17.1", "2.0.0"))),
    fails(
        *with_numpy("2.11.1", "2.0.2"),
        said={
            "tensorflow 2.11.1 with numpy 2.0.2": "A module that was compiled using NumPy 1.x cannot be run in NumPy 2"
        },
        commands=(f"{INSTALL} 'numpy<2'",),
        rollback=(f"{INSTALL} tensorflow==2.11.1 numpy==2.0.2",),
    ),
    fails(
        *with_numpy("2.17.1", "2.2.6", "tensorflow-cpu", requirement="h5py>=99"),  # another conflict
        "Expected: not tensorflow<2.18 with numpy>=2",
        of=["tensorflow-cpu 2.17.1 with numpy 2.2.6"],
        rollback=(f"{INSTALL} tensorflow-cpu==2.17.1 numpy==2.2.6",),
        explained_by=[""],
    ),
    fails(*with_numpy("2.17.1", "2.2.6"), tensorflow(distribution=None, version="2.17.1"), of=["tensorflow "]),
    fails(*with_numpy("2.17.1", "2.2.6", requirement="numpy<2"), keras(), explained_by=["versions.package-conflicts"]),
    fails(
        packages(package("tensorflow", "2.21.0"), package("h5py", "3.11.0")),
        tensorflow(),
        with_rows(OUR_OWN),
        ": our models do not load.",
        look=("kdoctor matrix",),
    ),
    passes(packages(package("h5py", "3.11.0")), tensorflow(), with_rows(f"{OUR_OWN}  job: some jobs")),  # a hazard
    passes(*with_numpy("2.21.0", "not a version")),  # versions.package-conflicts reports the invalid version
    unknown(*with_numpy("2.99.0", None), "newer than this kdoctor", str(shipped_matrix().updated)),
    unknown(*with_numpy("2.3.7", None), "not in this kdoctor's version matrix"),
    unknown(*with_numpy("two", "2.4.6"), said={"tensorflow two": "its version is not valid"}),
    unknown(packages(), tensorflow(version=None), said=NO_VERSION),
    given=(target(),),
)

test_in_matrix = table(
    "versions.in-matrix",
    Severity.WARNING,
    passes(evidence=2),
    passes(keras(version="3.15.9"), evidence=2),  # a patch of a measured series
    passes(keras(package="tf-keras", version="2.21.0")),
    fails(tensorflow(version="2.99.0"), "newer than", of=["tensorflow 2.99.0"], evidence=1),
    fails(tensorflow(version="2.3.7"), "not in", of=["tensorflow 2.3.7"]),
    fails(keras(version="3.99.0"), of=["keras 3.99.0"], commands=("kdoctor smoke --tier standard",)),
    fails(
        keras(version="3.99.0"),
        Assumptions(gpus=GpuAssumption(count=0)),
        commands=("kdoctor smoke --tier standard --replicas 2",),
    ),
    unknown(tensorflow(version=None)),
    unknown(TensorFlowBuild),
    unknown(KerasChoice),
    given=(tensorflow(), keras()),
)


def cudnn(version: str | None, wheel: str | None) -> FactGroup:
    return libraries(library("cudnn", version=version, package_version=wheel))


GOOD, BAD, UNREAD = cudnn("9.24.0", "9.24.0.43"), cudnn("9.5.1", "9.5.1.17"), cudnn(None, None)
TENSORFLOW, PRERELEASE = "tensorflow 2.21.0", tensorflow(version="2.99.0rc1")
HAZARD = """
- id: some_hazard
  when: {tensorflow: "==2.99.0rc1"%s}
  effect: crash
  job: some jobs
  symptom: it crashes
  %s
  fix: %s
  source: seen here
"""
OF_CUDNN = with_rows(HAZARD % (', cudnn: "<9.10.2"', 'install: ["nvidia-cudnn-cu12>=9.10.2"]', "cuDNN 9.10.2"))
SM_120 = gpu(1, name="NVIDIA GeForce RTX 5090", compute_capability="12.0")

test_known_hazards = table(
    "versions.known-hazards",
    Severity.WARNING,
    # aws/deep-learning-containers#6417: fails with 9.3 and 9.5.1, works with 9.24.0.43; not measured between
    fails(
        BAD,
        f"fail {TENSORFLOW}: fails with convolutions under XLA ",
        "INTERNAL: Autotuner",
        "Fix: Install nvidia-cudnn-cu12 9.24.0.43",
        commands=(f"{INSTALL} nvidia-cudnn-cu12==9.24.0.43",),
        action=Action.REINSTALL,
    ),
    unknown(cudnn("9.10.2", "9.10.2.21")),
    # The list counts only if every GPU was judged.
    passes(GOOD, f"pass {TENSORFLOW}: not in the list of combinations that fail with some jobs ("),
    fails(
        GOOD,
        gpus(2, gpu(0), SM_120),
        "sm_120",
        "Rollback: not needed",
        of=["GPU 1"],
        commands=(),
        action=Action.CHANGE_CODE,
        unsaid=TENSORFLOW,
    ),
    unknown(GOOD, gpus(2, gpu(0), gpu(1, compute_capability=None)), unsaid=TENSORFLOW),
    unknown(UNREAD, "unknown libcudnn: its version was not read.", unsaid=TENSORFLOW),
    unknown(PRERELEASE, UNREAD, OF_CUDNN, "unknown libcudnn: "),
    passes(tensorflow(version="2.98.0"), UNREAD, OF_CUDNN, unsaid="libcudnn"),
    fails(
        PRERELEASE,
        with_rows(HAZARD % ("", 'install: ["numpy==1.26.4"]', "numpy 1.26")),
        "Fix: Install numpy 1.26.;",
        of=["tensorflow 2.99.0rc1"],
        commands=(f"{INSTALL} numpy==1.26.4",),
        rollback=(f"{INSTALL} numpy==2.4.6",),
    ),
    fails(
        PRERELEASE,
        with_rows(HAZARD % ("", "", "set jit_compile=False")),
        "Fix: Set jit_compile=False.",
        commands=(),
        rollback=(),
        action=Action.CHANGE_CODE,
    ),
    unknown(tensorflow(version=None), said=NO_VERSION),
    unknown(tensorflow(version="two"), said={"tensorflow two": "its version is not valid"}),
    unknown(gpus(0, devices=(), count=0)),
    unknown(environment(CUDA_VISIBLE_DEVICES=""), "visible"),
    given=NODE,
)
