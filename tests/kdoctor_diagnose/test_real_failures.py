"""Failures that are made here, and diagnosed from their own logs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command import environ
from helpers.defects import DROPPED_REPLICA, NAN, SKIPPED_UPDATE, WRONG_SHARDS
from kdoctor.catalog.load import load_catalog
from kdoctor.failures.known import load_failures, load_reproductions
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.model import Diagnosis

MOUNTS = ("unshare", "--map-root-user", "--mount")

SHELL = {
    "numpy_missing": "{python} -S -c 'import numpy'",
    "port_in_use": """{python} -c '
import socket
first, second = socket.socket(), socket.socket()
first.bind(("127.0.0.1", 0))
second.bind(first.getsockname())'""",
    "memory_allocation": "ulimit -v 400000; {python} -c 'print(len(bytearray(10**10)))'",
    "killed_by_signal_9": "{python} -c 'import time; time.sleep(60)' & sleep 0.3; kill -9 $!; wait $!; true",
    "segmentation_fault": "{python} -X faulthandler -c 'import ctypes; ctypes.string_at(0)'; true",
    # What an uninstalled second distribution leaves: a folder with the name of the package.
    "tensorflow_mixed": "mkdir tensorflow; {python} -S -c 'import tensorflow as tf; tf.distribute.MirroredStrategy()'",
    "disk_full": "echo x > /dev/full",
    "checkpoint_truncated": "echo x > model.keras; {python} -c 'import zipfile; zipfile.ZipFile(\"model.keras\")'",
}
"""The failure to its command. They need no training framework."""


def log_of(command: str, folder: Path, *prefix: str) -> str:
    """Everything that a shell and its programs print."""
    done = subprocess.run(
        [*prefix, "bash", "-c", command.replace("{python}", sys.executable)],
        check=False, cwd=folder, env=environ(LC_ALL="C"), text=True, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


def diagnosed(log: str) -> Diagnosis:
    catalog = load_catalog()
    return diagnose_text(log, catalog.checks, catalog.scenarios)


@pytest.mark.parametrize("failure", SHELL)
def test_failure_is_diagnosed_from_its_log(failure: str, tmp_path: Path) -> None:
    log = log_of(SHELL[failure], tmp_path)
    first = diagnosed(log).first
    assert (first.id if first else None) == failure, log


SMALL_SHARED_MEMORY = {
    # NCCL reserves its segments like this.
    "disk_full": 'import os; os.posix_fallocate(os.open("/dev/shm/nccl", os.O_CREAT | os.O_RDWR), 0, 2**22)',
    # NumPy arrays of worker processes are written like this.
    "bus_error": (
        "from multiprocessing import shared_memory as shm; "
        'memory = shm.SharedMemory(create=True, size=2**22); memory.buf[:] = b"1" * memory.size'
    ),
}
"""The failure to a program that needs 4 MiB of /dev/shm where 1 MiB exists."""


@pytest.mark.parametrize("failure", SMALL_SHARED_MEMORY)
def test_small_shared_memory_is_diagnosed(failure: str, tmp_path: Path) -> None:
    if subprocess.run([*MOUNTS, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a private mount namespace")
    program = SMALL_SHARED_MEMORY[failure]
    command = f"mount -t tmpfs -o size=1m tmpfs /dev/shm && {{python}} -c '{program}'; exit $?"
    diagnosis = diagnosed(log_of(command, tmp_path, *MOUNTS))
    first = diagnosis.first
    assert (diagnosis.conclusion, first and first.id) == ("cause", failure)
    assert first
    assert any("shm" in command for fix in first.fix for command in fix.commands)


@pytest.mark.tensorflow
def test_broken_protobuf_is_diagnosed(tmp_path: Path) -> None:
    (tmp_path / "google" / "protobuf").mkdir(parents=True)
    (tmp_path / "google" / "__init__.py").touch()
    (tmp_path / "google" / "protobuf" / "__init__.py").touch()
    log = log_of("{python} -c 'import tensorflow'", tmp_path)
    first = diagnosed(log).first
    assert (first.id if first else None) == "protobuf_mismatch", log


DEFECTS = {
    "steps-per-execution": "keras3_steps_per_execution",
    "gradient-accumulation": "keras3_gradient_accumulation",
    "ema-overwrite": "keras3_ema_overwrite",
    "ragged-first-batch": "keras3_indivisible_global_batch",
    "optimizer-built-late": "keras3_optimizer_built_late",
    "multi-worker-fit": "keras3_multi_worker_fit",
    "parameter-server-fit": "keras3_parameter_server_fit",
    "jax-evaluate": "jax_indivisible_batch",
}
"""Scripts of ``kdoctor explain --reproduce`` whose failure raises, and the failure."""


@pytest.mark.smoke_full
@pytest.mark.tensorflow
@pytest.mark.parametrize("script", DEFECTS)
def test_planted_defect_is_diagnosed(script: str, tmp_path: Path) -> None:
    # The script catches its failure to print it in one line. A job prints the traceback.
    text = re.sub(
        r"(?m)^( *)except .*:\n", r"\g<0>\1    __import__('traceback').print_exc()\n", load_reproductions()[script]
    )
    (tmp_path / "job.py").write_text(text)
    log = log_of("pip freeze 2>/dev/null; {python} job.py", tmp_path)
    first = diagnosed(log).first
    assert (first.id if first else None) == DEFECTS[script], log[-3000:]


PLANTED = {
    "nan": (NAN, "nan_first_step"),
    "dropped-replica": (DROPPED_REPLICA, None),
    "skipped-update": (SKIPPED_UPDATE, None),
    "wrong-shards": (WRONG_SHARDS, None),
}
"""The defects of the smoke suite, and the failure that a log can show. The others train without a message."""
TRAINING = """
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
x = tf.random.stateless_uniform((16, 4), (1, 2))
with tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]).scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.01), "mse", jit_compile=False)
model.fit(x, tf.reduce_sum(x, 1), batch_size=8, epochs=2)
"""


@pytest.mark.smoke_full
@pytest.mark.tensorflow
@pytest.mark.parametrize("defect", PLANTED)
def test_defect_of_the_smoke_suite_is_diagnosed(defect: str, tmp_path: Path) -> None:
    code, failure = PLANTED[defect]
    (tmp_path / "job.py").write_text(f"import tensorflow as tf\n{code}{TRAINING}")
    log = log_of("CUDA_VISIBLE_DEVICES= {python} job.py", tmp_path)
    assert "Epoch 2/2" in log, log[-3000:]
    diagnosis = diagnosed(log)
    crashes = [cause.id for cause in diagnosis.causes if cause.kind in ("crash", "hang", "silent")]
    assert crashes[:1] == ([failure] if failure else []), log[-3000:]
    assert diagnosis.lines == []


JOBS = sorted(Path(__file__).with_name("jobs").glob("*.py.txt"))
"""Jobs that fail. Their first lines have the failures that are a correct cause, and the command."""
END_WHEN_IDLE = Path(__file__).with_name("jobs") / "end_when_idle.sh"


def stated(job: Path, name: str) -> str:
    """What a comment of the job says."""
    found = re.search(rf"(?m)^# {name}: (.+)", job.read_text())
    assert found, job
    return found[1]


@pytest.mark.smoke_full
@pytest.mark.tensorflow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name.partition(".")[0])
def test_failed_job_is_diagnosed(job: Path, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(job.read_text())
    command = stated(job, "run").replace("{file}", "job.py").replace("{end_when_idle}", f"bash {END_WHEN_IDLE}")
    log = log_of(command, tmp_path)
    logs = {"expect": log, **{f"expect {file.name}": file.read_text() for file in tmp_path.glob("*.log")}}
    for name, text in logs.items():
        first = diagnosed(text).first
        assert (first.id if first else None) in stated(job, name).split(", "), f"{name}: {text[-3000:]}"


def test_failures_of_jobs_are_known() -> None:
    expected = {name for job in JOBS for name in stated(job, "expect").split(", ")}
    assert expected | set(DEFECTS.values()) | set(SHELL) <= set(load_failures().by_id)
