from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import environment, package, packages, smoke_case, smoke_run, target
from helpers.rows import Row, fails, judged, passes, table, unknown
from kdoctor.facts import Environment, PackageFault, SmokeRun, Weights
from kdoctor.model import Action, Severity

HANG = """Timeout (0:03:58)!
Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
Thread 0x00007f2 (most recent call first):
  File "/opt/job/lib/tensorflow/python/eager/execute.py", line 53 in quick_execute
  File "/opt/job/lib/keras/src/trainer.py", line 77 in fit
"""
DEVICE = "/job:localhost/replica:0/task:0/device:"
NUMPY = {"numpy": 1.0}


def run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.baseline", 8, replace(smoke_case("mirrored", 8), **changes))


def one_replica(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.baseline", 1, smoke_case("mirrored", 1, **changes))


def made(number: int, requested: int | None, kind: str = "gpu", *, seen: int | None = 8) -> SmokeRun:
    case = smoke_case("mirrored", number, kind.upper())
    return smoke_run(
        "smoke.baseline", requested or 8, case, devices_kind=kind, replicas_requested=requested, gpus_seen=seen
    )


def weights(**changes: Any) -> Weights:
    return Weights(**{"variables": 6, "mirrored": 6, "nonfinite": (), "replicas_agree": True, **changes})


def not_imported(failure: str, **changes: Any) -> SmokeRun:
    return replace(run(), cases=(), failure=failure, **{"import_s": None, **changes})


def damaged(**fault: Any) -> SmokeRun:
    found = PackageFault(package="protobuf", version="7.36.2", files=59, **{"file": "f.py", **fault})
    return not_imported("ImportError: no", faults=(found,))


def shadowed(value: str | None, command: str) -> Row:
    """A file that shadows another one is taken from the search path."""
    variables = Environment(variables={} if value is None else {"PYTHONPATH": value})
    return fails(variables, damaged(shadowed=True, file="/job/lib/google/__init__.py"), commands=(command,))


RENAME = "mv /job/lib/google /job/lib/google.unused"
FACTS = (target(), packages())
REINSTALL = "/opt/job/bin/python -m pip install --force-reinstall --no-deps protobuf==7.36.2"

test_import = table(
    "smoke.baseline",
    Severity.ERROR,
    fails(
        not_imported("WrongBackendError: keras 3.15.1 computes with jax (KERAS_BACKEND ..."),
        "--strategy data-parallel",
        commands=("export KERAS_BACKEND=tensorflow",),
    ),
    fails(  # TensorFlow's message does not name the package that the backend lacks
        not_imported("ImportError: Keras cannot be imported. Check that it is installed."),
        environment(KERAS_BACKEND="torch"),
        commands=("export KERAS_BACKEND=tensorflow",),
    ),
    fails(
        not_imported("ImportError: Keras cannot be imported. Check that it is installed."),
        environment(KERAS_BACKEND="tensorflow"),
        commands=(),
    ),
    fails(
        not_imported("ImportError: libcudart.so.12: cannot open"),
        of=["import tensorflow"],
        briefs=["libcudart.so.12: cannot open"],
    ),
    fails(not_imported(f"ImportError: {'x' * 80}"), briefs=["raises ImportError"]),
    *(
        fails(
            not_imported(f"the process that imports tensorflow died of {end} (x)", signal=end),
            fix,
            briefs=[f"its process died of {end}"],
        )
        for end, fix in (("SIGKILL", "Free memory"), ("SIGSEGV", "Fix the error"))
    ),
    *(
        fails(
            not_imported(f"ImportError: /opt/job/lib/site-packages/tensorflow/{error}"),
            environment(LD_LIBRARY_PATH="/opt/old:/opt/other"),
            briefs=[error],
            commands=("unset LD_LIBRARY_PATH",),
            rollback=("export LD_LIBRARY_PATH=/opt/old:/opt/other",),
        )
        for error in ("lib_a.so.2: undefined symbol: _ZdlPv", "lib_a.so: version `GLIBCXX_3.4.30' not found")
    ),
    fails(not_imported("ImportError: lib_a.so.2: undefined symbol: _ZdlPv"), environment(), commands=()),
    fails(not_imported("ImportError: no such thing"), environment(LD_LIBRARY_PATH="/opt/old"), commands=()),
    fails(
        not_imported("the process that runs the trainings died of SIGKILL (x)", import_s=2.0, signal="SIGKILL"),
        of=["trainings"],
        briefs=["their process died of SIGKILL"],
        look=("free -h", "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.events"),
    ),
    fails(
        *FACTS,
        damaged(missing=1, changed=2),
        "f.py is missing (3 of 59 files of protobuf 7.36.2): ImportError: no.",
        commands=(REINSTALL,),
    ),
    fails(
        *FACTS, damaged(missing=0, changed=1), "f.py is changed (1 of 59 files of protobuf 7.36.2): ImportError: no."
    ),
    *(fails(*facts, damaged(missing=1), commands=()) for facts in ((), FACTS[:1], FACTS[1:])),
    shadowed("/job/lib", "unset PYTHONPATH"),
    shadowed("/job/lib/:/opt/other", "export PYTHONPATH=/opt/other"),
    shadowed("/opt/other", RENAME),
    shadowed(None, RENAME),
)

RAISED = {"outcome": "raised", "error_type": "ValueError", "error_message": "no\nmore", "phase": "train"}
HUNG = {"outcome": "timed-out", "phase": "train", "seconds": 240.1, "stacks": HANG}
DIED = {"outcome": "died", "signal": "SIGSEGV", "phase": "strategy", "stderr_tail": "a\nlast one\n"}

test_baseline = table(
    "smoke.baseline",
    Severity.ERROR,
    passes(
        run(weight_deviation=9e-8),
        *("8 replicas (gpu)", "6 variables", "losses 1, 0.5", "9e-08", "import 3.3 s", "build 0.2 s", "900 MiB"),
        briefs=["8 replicas, same weights as 1 device (within 9e-08)"],
    ),
    passes(made(2, 2, "cpu", seen=None), briefs=["2 CPU replicas, same weights as 1 device"]),
    passes(
        one_replica(measures=NUMPY, weight_deviation=9e-8),
        ": 1 replica (gpu), 6 variables; losses 1, 0.5; ",
        "9e-08 of NumPy",
        briefs=["1 replica, same weights as NumPy (within 9e-08)"],
    ),
    passes(made(2, 2), ": 2 replicas (gpu), 6 variables mirrored on each; losses"),
    unknown(one_replica(measures={}), "one replica"),  # it is not compared with itself
    unknown(one_replica(measures={"numpy": None}), "one replica"),
    unknown(replace(run(), cases=()), "MirroredStrategy"),
    unknown(replace(run(), failure="the process ended by SIGKILL"), "it trained, and the process ended by SIGKILL"),
    unknown(run(weights=None), "weights were not read"),
    unknown(run(weight_deviation=None), "weights were not compared"),
    unknown(run(reference_losses=()), "losses were not compared"),
    unknown(run(losses=(1.0,)), "fewer than two epochs"),
    unknown(run(replicas=None), "number of replicas"),
    unknown(run(weights=weights(variables=0, mirrored=0, replicas_agree=None)), "the model has no trainable variables"),
    unknown(run(weights=weights(replicas_agree=None)), "whether the replicas hold equal weights was not read."),
    passes(one_replica(weights=weights(replicas_agree=None), measures=NUMPY)),
    fails(run(**RAISED), ": ValueError in phase train: no", of=["MirroredStrategy"]),
    fails(
        run(**HUNG),
        *("phase train", "240 s", "eager/execute.py:53 quick_execute", "src/trainer.py:77 fit"),
        "export NCCL_DEBUG=INFO",
        unsaid="threading.py",
    ),
    fails(run(**DIED), "SIGSEGV in phase strategy", '"last one"'),
    fails(run(outcome="died", signal="SIGKILL", phase="train"), "SIGKILL in phase train", "free -h"),
    *(
        fails(
            replace(made(1, requested, seen=0), cases=(smoke_case("mirrored", 1, "CPU"),)),
            "device:CPU:0",
            "0 GPUs",
            of=["MirroredStrategy"],
        )
        for requested in (8, None)
    ),
    fails(
        replace(made(1, None, seen=0), cases=(smoke_case("mirrored", 1, "CPU"),)),
        "; TensorFlow lists 0 GPUs and raised no error.",
        expected="at least 1 replica, each on its GPU",
        briefs=["trains on the CPU with 1 replica, without an error"],
    ),
    fails(
        smoke_run("smoke.baseline", 2, smoke_case("mirrored", 2, devices=(f"{DEVICE}GPU:0", f"{DEVICE}CPU:0"))),
        "  trains on the CPU with 2 replicas",
    ),
    *(
        fails(made(number, requested, kind), expected=expected, briefs=[brief], unsaid="raised no error")
        for number, requested, kind, expected, brief in (
            (7, 8, "gpu", "8 replicas, each on its GPU", "7 replicas instead of 8"),
            (2, 1, "gpu", "1 replica, each on its GPU", "2 replicas instead of 1"),
            (1, 2, "cpu", "2 replicas", "1 replica instead of 2"),
        )
    ),
    *(
        unknown(run(**{size: few}), "every replica")
        for size in ("examples", "global_batch", "final_batch")
        for few in (1, None)
    ),
    fails(run(weights=weights(mirrored=5)), "5 of 6", "keras 3.15.1 with TensorFlow 2.21.0 does not"),
    passes(
        replace(run(), keras=None, tensorflow=None), "; weights within 0 of one device; Keras unknown, import 3.3 s"
    ),
    fails(run(weights=weights(nonfinite=("a", "b", "c", "d"))), "a, b, c and 1 more"),
    fails(run(weights=weights(nonfinite=("a",)), weight_deviation=0.5), briefs=["weights are NaN or infinite"]),
    fails(run(weights=weights(replicas_agree=False)), "different weights"),
    *(
        fails(run(losses=losses, reference_losses=losses), action=Action.INSPECT_HARDWARE)
        for losses in ((1.0, 1.0), (1.0, None), (1.0, None, 0.5), (1.0, 2.0))  # that do not fall
    ),
    fails(
        replace(run(weight_deviation=0.05), keras="keras 3.6.0"),
        target(),
        packages(package("keras", "3.6.0")),
        "0.05, above the tolerance of 0.0001 (keras 3.6.0, 8 replicas)",
        commands=("/opt/job/bin/python -m pip install 'keras>=3.10'",),
        rollback=("/opt/job/bin/python -m pip install keras==3.6.0",),
    ),
    fails(run(weight_deviation=0.05), action=Action.CHANGE_CODE, commands=()),
    fails(replace(run(weight_deviation=0.05), keras="keras 3.8.0"), commands=()),
    fails(
        replace(run(losses=(1.0, 0.5), reference_losses=(1.0, 0.55)), keras="keras 3.8.0"),
        "1, 0.5 instead of 1, 0.55",
        commands=("pip install 'keras>=3.10'",),
        rollback=("pip install keras==3.8.0",),
    ),
)


def test_silent_training_on_the_cpu_is_explained_by_missing_libraries_and_gpus() -> None:
    cpu = replace(made(1, 8, seen=0), cases=(smoke_case("mirrored", 1, "CPU"),))
    explained = judged("smoke.baseline", cpu).findings[0].finding.explained_by
    assert {"versions.cuda-libraries", "gpu.replicas-match"} <= set(explained)


def test_missing_result_of_another_training_is_explained_by_the_failed_import() -> None:
    failed = not_imported("ModuleNotFoundError: No module named 'wrapt'", tensorflow=None)
    other = replace(failed, scenario="smoke.uneven-final-batch")
    first, *_ = judged("smoke.uneven-final-batch", other).unjudged
    assert {"versions.package-conflicts", "smoke.baseline"} <= set(first.explained_by)


@pytest.mark.parametrize(("release", "explained"), [("3.6.0", True), ("3.8.0", False), ("3.15.1", False)])
def test_different_weights_are_explained_by_a_keras_with_that_defect(release: str, *, explained: bool) -> None:
    (found,) = judged("smoke.baseline", replace(run(weight_deviation=0.05), keras=f"keras {release}")).findings
    assert ("versions.keras-compatible" in found.finding.explained_by) is explained
