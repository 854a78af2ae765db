"""What is read: files in many forms, in constant memory, and never executed or trusted."""

import gzip
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cases import cases
from kdoctor.errors import UsageError
from kdoctor_diagnose import inputs
from kdoctor_diagnose.diagnose import diagnose, diagnose_text
from kdoctor_diagnose.inputs import Log, PartlyReadError, logs_of
from kdoctor_diagnose.line import split
from kdoctor_diagnose.model import Diagnosis
from kdoctor_diagnose.report.formats import FORMATS, render

ERROR = "RuntimeError: Mixing different tf.distribute.Strategy objects: one is not the other"
ID = "optimizer_outside_scope"


def read(*names: str | Path, stdin: bytes = b"") -> Diagnosis:
    logs, notes = logs_of([str(name) for name in names], io.BytesIO(stdin))
    return diagnose(logs, {}, {}, notes=notes)


def text(log: str) -> Diagnosis:
    return diagnose_text(log, {}, {})


def first(diagnosis: Diagnosis) -> tuple[str, int, str | None]:
    cause = diagnosis.causes[0]
    return cause.id, cause.first.line, cause.first.rank


@cases(
    f"a\n{ERROR}\n".encode(),
    f"a\r\n{ERROR}\r\n".encode(),
    f"\ufeffa\n{ERROR}".encode(),
    f"a\n{ERROR}\n".encode("utf-16"),
    gzip.compress(f"a\n{ERROR}\n".encode()),
    f"a\n\x1b[31m{ERROR[:20]}\x1b[1m{ERROR[20:]}\x1b[0m\n".encode(),
    f"a\n1/2 ━━\r2/2 ━━\r{ERROR}\r\n".encode(),
    f"a\n1/2 ━━{chr(8) * 20}{ERROR}\n".encode(),
    b"\xff\xfe\xfd"[:1] + f"a\n{ERROR}\n".encode(),
    f"a\n{ERROR}\n".encode("utf-16-be"),
    f"8/8 {chr(0x2501) * 20} 1s 2ms/step\n{ERROR}\n".encode("utf-16-le"),
    b"\0" * (3 << 20) + f"a\n{ERROR}\0\n".encode(),  # truncated while its program wrote on
    ids=[
        "plain",
        "crlf",
        "bom",
        "utf16",
        "gzip",
        "colours",
        "progress",
        "backspace",
        "not utf8",
        "utf16 unmarked",
        "utf16 unmarked with bars",
        "zeros",
    ],
)
def test_form_of_the_file_does_not_matter(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(content)
    assert first(read(path))[:2] == (ID, 2)


BARS = (
    " 340/1563 ━━━━━━━━━━━━━━━━━━━━ 8s 6ms/step - accuracy: 0.5013 - loss: 1.3002",
    " 340/1563 ━━━━━━━━━━━━━━━━━━━━ 8s 6ms/step - loss: nan",
    " 12/391 [..............................] - ETA: 31:22 - loss: 2.3026e-04",
    " 391/391 [==============================] - 3s 6ms/step - loss: 1.3002 - val_loss: 2.1000",
    " 22%|██▏       | 340/1563 [00:12<00:45, 27.1it/s]",
    "[1,0]<stdout>: 12/391 [..............................] - ETA: 5s - loss: 2.3026",
)


@pytest.mark.parametrize("bar", BARS)
@cases(
    ("Killed", "killed_by_signal_9"),
    ("Terminated", "terminated"),
    ("Segmentation fault (core dumped)", "segmentation_fault"),
    (ERROR, ID),
    (f"2026-11-20 03:12:44.102931: {ERROR}", ID),
    (f"[rank1]: {ERROR}", ID),
)
def test_message_behind_a_progress_bar_is_read(bar: str, written: str, cause: str) -> None:
    diagnosis = text(f"Epoch 1/2\n{bar}{written}\n")
    ids = [one.id for one in (*diagnosis.causes, *diagnosis.also)]
    ids += [follower.id for one in diagnosis.causes for follower in one.followed_by]
    assert cause in ids
    place = next((one.first for one in diagnosis.causes if one.id == cause), None)
    assert place is None or (place.line, place.text) == (2, written.removeprefix("[rank1]: "))
    assert place is None or not written.startswith("[rank1]") or place.rank == "1"


def test_unknown_error_behind_a_progress_bar_is_shown() -> None:
    diagnosis = text(f"Epoch 1/2\n{BARS[0]}2026-11-20 05:00:01.112345: F external/x.cc:3] Check failed: a == b\n")
    assert (diagnosis.conclusion, [line.line for line in diagnosis.lines]) == ("not-recognised", [2])


@pytest.mark.parametrize("bar", BARS)
def test_progress_bar_alone_is_no_message(bar: str) -> None:
    diagnosis = text(f"Epoch 1/2\n{bar} - killed: 3\n{bar}\n{bar.replace('nan', '1.0')}\n")
    assert not [one.id for one in diagnosis.causes if one.kind != "silent"]
    assert diagnosis.conclusion in {"cause", "no-end"}


PREFIXES = (
    "Nov 20 03:12:44 gpu-07 python3[48211]: ",  # journalctl
    "Nov 20 03:12:44 ",  # ts
    "[2026-11-20 03:12:44] ",
    "2026/11/20 03:12:44 ",
    "[2026-11-20, 03:12:44 UTC] {process_utils.py:182} INFO - ",  # Airflow
    "2026-11-20T03:12:44.1029310Z ",  # GitHub Actions
    "2026-11-20T03:12:44.102931+0100 gpu-07 train.sh[48211]: ",
    "1763608364102 ",  # CloudWatch
    "[1,mpirank:3,algo-1]<stderr>:",  # SageMaker
    "[Rank 3] ",
    "[default3]:2026-11-20 03:12:44 ",
    "train\tRun python train.py\t2026-11-20T03:12:44.1234567Z ",
    "INFO\t2026-11-20 03:12:44 +0000\tworkerpool0-0\t\t",
    "> ",
    "    ",
    "  |   |   | 2021-11-17 12:30:37 | ",
)
UNKNOWN = ("F0000 00:00:1732000000.112345 123 x.cc:33] something is off", "some.module.WeirdError: what")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_a_collector_of_logs_writes_before_a_line_does_not_matter(prefix: str) -> None:
    for log, cause in (("Epoch 1/5\nKeyboardInterrupt", "cancelled"), (f"Epoch 1/2\n{ERROR}", ID)):
        assert text("".join(f"{prefix}{line}\n" for line in log.splitlines())).causes[0].id == cause
    traceback = ("Traceback (most recent call last):", '  File "train.py", line 3, in f', "    f()", "KeyError: 7")
    own = text("".join(f"{prefix}{line}\n" for line in traceback)).own
    assert own is not None
    assert (own.text, own.program) == ("KeyError: 7", "train.py:3")
    for line in UNKNOWN:
        diagnosis = text(f"{prefix}Epoch 1/5\n{prefix}{line}\n")
        assert (diagnosis.conclusion, [shown.text for shown in diagnosis.lines]) == ("not-recognised", [line])


@cases(
    {"severity": "ERROR", "jsonPayload": {"message": ERROR}},
    {"log": f"{ERROR}\n", "stream": "stderr", "time": "2026-11-20T03:12:44.102931123Z"},
    {"textPayload": ERROR, "timestamp": "2026-11-20T03:12:44.102Z"},
    {"msg": f"[rank1]: {ERROR}"},
)
def test_message_of_a_line_in_json_is_read(entry: dict[str, object]) -> None:
    diagnosis = text(f"{{}}\n{json.dumps(entry)}\n")
    assert first(diagnosis)[:2] == (ID, 2)
    assert diagnosis.causes[0].first.text == ERROR


LIMIT = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-03-02T08:00:11 DUE TO {} ***"
KILLED = "srun: error: n3: task 1: Killed"
STEPS = "210/1251 ━━━━━━━━━━━━━━━━━━━━ 4:01:22 14s/step - loss: 1.2211"
STEP = "100/100 ━━━━━━━━━━━━━━━━━━━━ 3s 21ms/step - loss: 1.0"
STALLED = "stall_inspector.cc:105] One or more tensors ... waiting for remainder of ranks for more than 60 seconds."
STUCK = "E rendezvous.cc:38] This thread has been waiting for `acquire clique` for 10 seconds and may be stuck."
UNSTUCK = "E rendezvous.cc:108] Thread is unstuck! Warning above was a false-positive."
# TensorFlow logs the status with which a step ends, and raises it afterwards.
STATUS = f"W0000 00:00:1795388852.5 1 local_rendezvous.cc:412] Local rendezvous is aborting with status: {ERROR}"
WITHOUT_GPUS = "Could not find cuda drivers on your machine, GPU will not be used."
BAR = "".join(f"\r{step}/9 ━━━ {step}s 2ms/step - loss: 0.1" for step in range(9))
INTERRUPTED = "^CTraceback (most recent call last):\n  File 'x', line 3\nKeyboardInterrupt"
NO_NAME = "cannot import name 'Spectral' from 'tensorflow.keras.layers' (/opt/a/keras/layers/__init__.py)"


@cases(
    # A kill after the time limit is not evidence against a hang.
    (
        f"Epoch 1/90\n{LIMIT.format('TIME LIMIT')}\n{KILLED}",
        "hang_in_first_step",
        1,
        ["time_limit", "killed_by_signal_9"],
    ),
    (f"Epoch 1/90\n{LIMIT.format('PREEMPTION')}\n{KILLED}", "preempted", 2, None),
    (f"{LIMIT.format('PREEMPTION')}\nOSError: [Errno 116] Stale file handle", "preempted", 1, None),
    (
        f"CommandNotFoundError: no conda\n 9/50 [9:01<35:20, 63.4s/it]\n{LIMIT.format('PREEMPTION')}",
        "preempted",
        3,
        None,
    ),
    (f"Epoch 1/5\n{LIMIT.format('TIME LIMIT')}", "hang_in_first_step", 1, ["time_limit"]),
    # Without GPUs the job was too slow.
    (f"{WITHOUT_GPUS}\n{STEPS}\n{LIMIT.format('TIME LIMIT')}", "cudart_not_found", 1, ["time_limit"]),
    (f"{STEPS}\n{LIMIT.format('TIME LIMIT')}", "time_limit", 2, []),
    # Lines of a progress bar are not lines of the file.
    (f"compile\n{BAR}\n\nEpoch 1/5\n\n{INTERRUPTED}", "hang_in_first_step", 4, None),
    # A line that was often the same is only counted, and its last place counts too.
    *(
        (f"{before}\n{STEP}\n{STALLED}", "horovod_stalled", 1, [])
        for before in (STALLED, "\n".join([STALLED] * 250), f"[rank1]: {STALLED}")
    ),
    (f"{STATUS}\n{ERROR}", ID, 2, []),
    (f"{STUCK}\n{UNSTUCK}\n{STUCK}", "rendezvous_stuck", 1, []),
    (f"ImportError: {NO_NAME}", "keras_name_removed", 1, []),
)
def test_cause_its_line_and_what_follows(log: str, cause: str, line: int, followed_by: list[str] | None) -> None:
    diagnosis = text(f"{log}\n")
    assert (diagnosis.conclusion, first(diagnosis)[:2]) == ("cause", (cause, line))
    assert followed_by is None or [item.id for item in diagnosis.causes[0].followed_by] == followed_by
    assert cause != "cudart_not_found" or diagnosis.causes[0].against


FAILS = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n    f()\nKeyError: 7\n'
CAUGHT = "Traceback (most recent call last):\n  File 'x', line 3\nKeyError: 'a'\n"
SEVERITIES = ("Epoch 1/1", "8/8 [====] - 1s 3ms/step - loss: 0.1", "saved the model")


@cases(
    ("[ERROR] could not load model 0\n[INFO] loss 1.4\n[INFO] finished", "no-failure"),
    # Google Cloud gives this severity to stderr.
    ("\n".join(json.dumps({"severity": "ERROR", "message": line}) for line in SEVERITIES), "no-failure"),
    (f"{CAUGHT}{STEP}", "no-failure"),
    (f"{STATUS}\n{STEP}", "no-failure"),
    (f"{STALLED}\n{STEP}", "no-failure"),
    (f"{STALLED}\n{STEP}\nValueError: I/O operation on closed file.", "not-recognised"),
    ("step 1/9: loss = 0.7\nstep 7/9: loss = 0.5", "no-end"),
    ("step 1/9: loss = 0.7\nstep 9/9: loss = 0.5", "no-failure"),
    (f"{STUCK}\n{UNSTUCK}", "no-end"),
    # A release whose lines have no time.
    ("start\nE tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime says no", "not-recognised"),
    (
        FAILS.replace("KeyError: 7", "a.DataLossError: Graph execution error:\n\nDetected at node x defined at:")
        + '  File "/a/lib/python3.11/site-packages/keras/b.py", line 1, in f\n\n' * 12,
        "not-recognised",
    ),
)
def test_log_without_a_cause(log: str, conclusion: str) -> None:
    diagnosis = text(f"{log}\n")
    assert (diagnosis.conclusion, diagnosis.causes) == (conclusion, [])
    ruled_out = {STALLED: "horovod_stalled", STUCK: "rendezvous_stuck"}
    assert [item.id for item in diagnosis.ruled_out] == [name for line, name in ruled_out.items() if line in log]


def test_code_that_ipython_shows_around_a_line_is_not_a_message() -> None:
    head = "ValueError                  Traceback (most recent call last)\nCell In[1], line 1\n----> 1 f()\n"
    assert text(f"{head}    300   raise {ERROR}\n--> 303   raise ValueError(x)\n\nValueError: x\n").causes == []
    code = "    300       'Need to be inside \"with strategy.scope()\" for %s' %\n--> 303   raise R(\n"
    cut = text(f"{head}{code}")
    assert [(cause.id, cause.certainty) for cause in cut.causes] == [("model_outside_scope", "likely")]


def test_message_before_a_cut_traceback_is_the_cause_although_it_may_be_ignored() -> None:
    ignored = "(DEBUG INFO) Executor start aborting (this does not indicate an error and you can ignore this message): "
    title = "a.UnknownError  Traceback (most recent call last)"
    found = text(f"{ignored}UNKNOWN: Error invoking NCCL: unhandled cuda error\n{title}\n")
    assert [(cause.id, cause.certainty) for cause in found.causes] == [("nccl_cuda_error", "possible")]


def test_notebook_outputs_are_read(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "stream", "text": ["Epoch 1/2\n"]},
        {"output_type": "error", "traceback": ["\x1b[0;31mTraceback", ERROR]},
    ]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [ERROR], "outputs": outputs}]}))
    assert first(read(path))[:2] == (ID, 3)


@cases(
    (2, "m.fit(x)", "fine", "no-failure"),
    (None, "m.fit(x)", "fine", "no-end"),  # it runs, or the kernel died
    (2, "!python train.py", "fine", "no-end"),
    (2, "!python train.py", "Killed", "consequence"),
    (2, "%%time\nm.fit(x)", "Epoch 1/2", "no-failure"),  # early stopping
)
def test_end_of_a_notebook(tmp_path: Path, number: int | None, source: str, printed: str, conclusion: str) -> None:
    first = {"source": ["import keras"], "execution_count": 1, "outputs": []}
    outputs = [{"output_type": "stream", "text": [f"{printed}\n"]}]
    last = {"source": [source], "execution_count": number, "outputs": outputs}
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [first, last]}))
    assert read(path).conclusion == conclusion


def test_last_cell_that_failed_is_the_answer(tmp_path: Path) -> None:
    def failed(name: str) -> dict[str, object]:
        title = f"{name}   Traceback (most recent call last)"
        lines = [title, "<ipython-input-3-1> in <module>", "----> 1 f()", f"{name}: "]
        return {"outputs": [{"output_type": "error", "traceback": lines}], "execution_count": 3}

    saved = {"outputs": [{"text": "UsageError: no magic\nacc 0.9, saved\n"}], "execution_count": 4}
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [failed("KeyError"), saved, failed("TabError"), saved]}))
    assert [line.text for line in read(path).lines] == ["TabError"]
    path.write_text(json.dumps({"cells": [saved, failed("KeyboardInterrupt"), saved]}))
    assert [cause.id for cause in read(path).causes] == ["cancelled"]


def test_installed_packages_of_a_folder_are_not_logs(tmp_path: Path) -> None:
    for name in (".venv/pyvenv.cfg", ".venv/lib/x.txt", "lib/site-packages/x.txt", ".slurm/job.out"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"a\n{ERROR}\n")
    assert [log.name for log in logs_of([str(tmp_path)], io.BytesIO())[0]] == [str(tmp_path / ".slurm/job.out")]


def test_folder_and_stdin_are_read(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("[rank0]: ncclRemoteError: A call failed\n")
    (tmp_path / "rank1.out").write_text(f"fine\n[rank1]: {ERROR}\n")
    (tmp_path / "weights.bin").write_bytes(b"\0" * 100)
    diagnosis = read(tmp_path)
    assert first(diagnosis) == (ID, 2, "1")
    assert [item.id for item in diagnosis.causes[0].followed_by] == ["nccl_remote_error"]
    assert first(read("-", stdin=ERROR.encode()))[:2] == (ID, 1)


def test_unreadable_input_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 10_000)[:30])
    (tmp_path / "b.log").write_bytes(b"\0" * 5000)
    (tmp_path / "empty").mkdir()
    (tmp_path / "c.ipynb").write_text("{")
    (tmp_path / "d.log").touch()
    (tmp_path / "e.log").write_bytes(bytes(range(256)) * 100)
    for name in ("a.gz", "b.log", "empty", "c.ipynb", "missing", "d.log", "e.log"):
        with pytest.raises(UsageError):
            read(tmp_path / name)
    with pytest.raises(UsageError):
        read(tmp_path / "d.log", tmp_path / "e.log")


def test_contradicted_failure_is_not_a_consequence_of_a_later_one(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-01-01 10:00:00 x\nOut of memory: Killed process 12 (python)\n")
    (tmp_path / "b.log").write_text(
        "2026-01-01 09:00:00 NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.\n100/100 - 3s - 31ms/step\n"
    )
    diagnosis = read(tmp_path / "a.log", tmp_path / "b.log")
    assert [cause.id for cause in diagnosis.causes] == ["host_out_of_memory", "gpu_lost"]
    assert diagnosis.causes[1].against


@cases(
    ("[rank3]: x", "3"),
    ("[1,2]<stderr>:x", "2"),
    ("7: x", "7"),
    ("[pod/trainer-1/main] x", "pod/trainer-1/main".removeprefix("pod/")),
    ("2026-01-01T00:00:00Z stderr F [default5]:x", "5"),
    ("worker-2: x", "2"),
    ("3: 2026-01-01 00:00:00,123 x", "3"),
    ("INFO\t2026-01-01 00:00:00 +0000\tworkerpool1-0\t\tx", "workerpool1-0"),
    ("node1:22:33 [4] NCCL WARN x", "node1 GPU 4"),
    ("x: y", None),
)
def test_rank_is_read_from_the_prefix(raw: str, rank: str | None) -> None:
    assert split(raw).rank == rank


def test_first_failure_in_time_is_the_cause_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"2026-01-01 10:00:09 x\n{ERROR}\n")
    (tmp_path / "b.log").write_text("2026-01-01 10:00:01 x\nOSError: [Errno 28] No space left on device\n")
    diagnosis = read(tmp_path)
    assert diagnosis.causes[0].id == "disk_full"
    assert [item.id for item in diagnosis.causes[0].followed_by] == [ID]


def test_kill_explains_what_the_other_worker_says_of_it(tmp_path: Path) -> None:
    failed = "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)\n"
    survivor = (
        "Aborting RingReduce with UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n"
        "UNAVAILABLE: The error could be from a previous operation. Restart your program to reset.\n"
    )
    (tmp_path / "worker-0.log").write_text(failed + survivor)
    (tmp_path / "worker-1.log").write_text(failed + "bash: line 1: 5745 Killed                  python train.py\n")
    cause, line, _ = first(read(tmp_path / "worker-0.log", tmp_path / "worker-1.log"))
    assert (cause, line) == ("killed_by_signal_9", 2)


def test_versions_decide() -> None:
    message = "ValueError: Attempt to convert a value (PerReplica:{) with an unsupported type\n"
    assert text(f"keras==3.15.1\n{message}").causes[0].certainty == "certain"
    assert text(message).causes[0].certainty == "likely"
    ruled_out = text(f"keras==2.15.0\n{message}")
    assert (ruled_out.conclusion, [item.id for item in ruled_out.ruled_out]) == (
        "not-recognised",
        ["keras3_multi_worker_fit"],
    )


def test_training_that_goes_on_is_evidence_against() -> None:
    after = "10/10 ━━━━━ 1s 2ms/step - loss: 0.1\n"
    alone, continued = text(f"{ERROR}\n"), text(f"{ERROR}\nEpoch 1/2\n{after}")
    ended = text(f"{ERROR}\nEpoch 2/2\n{after}")
    assert (alone.causes[0].certainty, alone.causes[0].against) == ("certain", [])
    assert (continued.causes[0].certainty, len(continued.causes[0].against)) == ("likely", 1)
    assert (ended.conclusion, [len(cause.against) for cause in ended.also]) == ("no-failure", [1])


def test_unknown_failure_shows_its_lines_and_no_guess() -> None:
    log = "Epoch 1/2\nTraceback (most recent call last):\n  File 'x'\nKeyError: 'label'\n"
    diagnosis = text(f"Could not find cuda drivers on your machine, GPU will not be used.\n{log}")
    assert (diagnosis.conclusion, diagnosis.causes) == ("not-recognised", [])
    assert "KeyError: 'label'" in [line.text for line in diagnosis.lines]
    assert [cause.id for cause in diagnosis.also] == ["cudart_not_found"]


@cases(
    ("NCCL WARN Cuda failure 1\nRuntimeError: NCCL Error 1: unhandled cuda error", "nccl_cuda_error"),
    ("ncclRemoteError: A call failed possibly due to a network error", "nccl_remote_error"),
    ("BrokenPipeError: [Errno 32] Broken pipe", "process_pipe_closed"),
    ("The following tasks are unhealthy (stopped sending heartbeats):", "worker_crashed"),
    ("[rank1]: gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1", "worker_lost"),
    ("ImportError: DLL load failed while importing _pywrap_tensorflow_internal", "dll_load_failed"),
    ("UNAVAILABLE: The error could be from a previous operation. Restart your program to reset.", "two_strategies"),
    ("Segmentation fault (core dumped)", "segmentation_fault"),
    (ERROR, ID),
)
@pytest.mark.parametrize(
    "waits", ["Epoch 1/2", "n1:1:2 [0] NCCL INFO comm 0x1 Init COMPLETE", "Waiting for the cluster, timeout = inf"]
)
def test_crash_rules_a_hang_out(waits: str, crash: str, cause: str) -> None:
    diagnosis = text(f"{waits}\n{crash}\nsrun: error: n3: task 1: Exited with exit code 1\n")
    found, line, _ = first(diagnosis)
    assert (found, line) == (cause, 2)
    assert not any("hang" in follower.id for follower in diagnosis.causes[0].followed_by)


def test_crash_of_one_worker_explains_the_wait_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-01-01 10:00:01 start\nEpoch 1/5\n")
    (tmp_path / "b.log").write_text("2026-01-01 10:00:01 start\nEpoch 1/5\n2026-01-01 10:09:00 x\n" + ERROR)
    known = read(tmp_path)
    assert first(known)[:2] == (ID, 4)
    assert [item.id for item in known.causes[0].followed_by] == ["hang_in_first_step"]
    (tmp_path / "b.log").write_text("Epoch 1/5\nTraceback (most recent call last):\n  File 'x'\nKeyError: 'label'\n")
    unknown = read(tmp_path)
    assert (unknown.conclusion, unknown.lines[0].text) == ("not-recognised", "KeyError: 'label'")


def test_hang_needs_evidence_of_an_end_or_of_several_gpus() -> None:
    alone = text("Epoch 1/5\n")
    ended = text("Epoch 1/5\n^CTraceback (most recent call last):\n  File 'x', line 3\nKeyboardInterrupt\n")
    several = text("INFO:tensorflow:Using MirroredStrategy with devices ('/GPU:0', '/GPU:1')\nEpoch 1/5\n")
    assert (alone.conclusion, alone.causes) == ("no-end", [])
    assert (ended.causes[0].certainty, several.causes[0].certainty) == ("possible", "likely")


CLASSES = st.from_regex(r"(?:[a-z_]{1,8}\.){0,2}[A-Z][A-Za-z]{1,12}", fullmatch=True)
TAILS = st.sampled_from(["", "a line\n", "  indented\n", "Detected at node x defined at (most recent call last):\n"])


TRAINED = "Epoch 5/5\n9/9 ━━━ 0s 2ms/step - loss: 0.1\n"


@settings(max_examples=200)
@given(CLASSES, st.sampled_from(["", ": a message"]), st.lists(TAILS, max_size=60), st.sampled_from(["", TRAINED]))
def test_log_that_ends_after_a_traceback_is_a_failure(name: str, message: str, tail: list[str], before: str) -> None:
    frame = 'Traceback (most recent call last):\n  File "train.py", line 3\n'
    log = f"{before}{frame}{name}{message}\n{''.join(tail)}"
    found = text(log)
    assert found.conclusion != "no-failure"
    if found.conclusion == "not-recognised":
        assert found.own is not None
        assert (found.own.text.partition(":")[0], found.own.program) == (name, "train.py:3")


WRAPPED = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 29, in <module>
    model.fit(x, y)
  File "/opt/job/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
tensorflow.python.framework.errors_impl.{name}: {first}

Detected at node a/b defined at (most recent call last):
  File "/opt/job/lib/python3.11/site-packages/keras/src/layers/layer.py", line 2, in __call__

<stack traces unavailable>
{last}
\t [[{{{{node a/b}}}}]] [Op:__inference_multi_step_on_iterator_766]
"""


@cases(
    ("InvalidArgumentError", "Graph execution error:", "Unknown image file format.", "data"),
    ("InvalidArgumentError", "Graph execution error:", "2 root error(s) found.\n  (0) INTERNAL:  too few", "program"),
    ("NotFoundError", "Graph execution error:", "/data/a.txt; No such file or directory", "program"),
    ("UnknownError", "Graph execution error:", "/data/a.h5; Input/output error", "machine"),
    ("InternalError", "Graph execution error:", "something", "environment"),
)
def test_own_error_is_the_message_behind_the_wrapper(name: str, first: str, last: str, owner: str) -> None:
    # Blocks end anywhere, also between an exception and its message.
    log = ("x" * 70 + "\n") * 20 + WRAPPED.format(name=name, first=first, last=last)
    content = log.encode()
    for size in (len(content), 900):
        pieces = [content[start : start + size] for start in range(0, len(content), size)]
        own = diagnose([Log("x", lambda pieces=pieces: iter(pieces))], {}, {}).own  # type: ignore[misc]
        assert own is not None
        assert own.text == f"{name}: {last.rsplit('L:  ', maxsplit=1)[-1]}"
        assert (own.program, own.owner) == ("train.py:29", owner)


def test_healthy_job_without_gpus_is_no_failure() -> None:
    line = "E0000 00:00:1795715690.299662 7 cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)\n"
    found = text(line + TRAINED)
    assert (found.conclusion, [cause.id for cause in found.also]) == ("no-failure", ["libcuda_missing"])


def test_secrets_and_control_characters_are_not_quoted() -> None:
    log = f"{ERROR} https://ada:hunter2@example.org token=abcdef123456 \x1b]0;title\x07\x9b31m\n"
    for name in FORMATS:
        shown = render(text(log), name)
        assert "hunter2" not in shown
        assert "abcdef123456" not in shown
        assert "\x1b" not in shown
        assert "\x9b" not in shown


def test_markup_is_escaped() -> None:
    diagnosis = text(f"{ERROR} <script>alert(1)</script> ````\n")
    assert "<script>" not in render(diagnosis, "html")
    assert "`````text" in render(diagnosis, "markdown")


def test_size_and_time_are_bounded() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 1000 + b"\n"

    started = time.monotonic()
    diagnosis = diagnose([Log("endless", endless)], {}, {}, timeout_s=0.5)
    assert time.monotonic() - started < 30
    assert diagnosis.notes


def test_memory_is_constant() -> None:
    """Lines that are all different, and one line that never ends."""
    import resource

    def lines() -> Iterator[bytes]:
        for number in range(40):
            yield b"".join(b"%x %s\n" % (number * 10**6 + i, bytes([97 + i % 26]) * (50 + i % 50)) for i in range(9000))
        yield from [b"y" * (1 << 20)] * 40

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert diagnose([Log("big", lines)], {}, {}).logs[0].bytes > 60 << 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 120


def test_quote_begins_near_a_late_message() -> None:
    quote = text(f"tensorflow.errors: {'{function_node} ' * 20}{ERROR}\n").causes[0].first.text
    assert quote.startswith("tensorflow.errors: ... Mixing")


def test_unknown_error_before_a_closing_line_is_the_failure() -> None:
    log = (
        "Traceback (most recent call last):\nKeyError: 'label'\nsrun: error: gpu003: task 1: Exited with exit code 1\n"
    )
    diagnosis = text(log)
    assert (diagnosis.conclusion, diagnosis.lines[0].text) == ("not-recognised", "KeyError: 'label'")


@cases(
    ("2026-03-02T09:00:00+09:00", 0.0),
    ("2026-03-02 00:00:00.250Z", 0.25),
    ("2026-03-01T19:00:00.123456789-0500", 0.123456789),
    ("2026-03-02 00:00:00,5 INFO", 0.5),
)
def test_time_zone_of_a_line_counts(written: str, seconds: float) -> None:
    start = split("2026-03-02 00:00:00").time
    found = split(f"{written} step").time
    assert start is not None
    assert found == pytest.approx(start + seconds, abs=1e-5)


def test_errors_that_wrap_others_are_shown_alone() -> None:
    diagnosis = text("InvalidArgumentError: Graph execution error:\n\nDetected at node A\n")
    assert diagnosis.conclusion == "not-recognised"
    both = text("InvalidArgumentError: Graph execution error:\n  (0) INVALID_ARGUMENT: shapes differ\n")
    assert both.lines[0].text == "InvalidArgumentError: shapes differ"


def test_message_that_is_passed_on_is_known_with_its_class() -> None:
    wrapped = "UnavailableError: 2 root error(s) found.\n  (0) Unavailable: {{function_node f}} Socket closed\n"
    assert "worker_lost" in [cause.id for cause in text(wrapped).causes]
    assert "worker_lost" not in [cause.id for cause in text(wrapped.replace("Unavail", "Intern")).causes]


@cases(
    "[1]    57831 abort      python3 train.py",
    "zsh: segmentation fault  python train.py",
    "python(41,0x1) malloc: *** error for object 0x3: pointer being freed was not allocated",
    "free(): invalid pointer",
    "Exception: URL fetch failure on https://example.org/weights.h5",
    "/a/Executable.mm:1304: failed assertion `Error: pass manager failed'",
    "/a/graph.mm:233:0: error: 'multiply' op shapes differ",
    "W platform_util.cc:210] unable to create StreamExecutor: CUDA_ERROR_MAP_FAILED",
    "W rocm_driver.cc:20] failed: hipErrorOutOfPaper",
)
def test_native_end_is_a_failure_unless_training_went_on(line: str) -> None:
    assert text(f"start\n{line}\n" + "later\n" * 40).conclusion == "not-recognised"
    assert text(f"start\n{line}\n10/10 [====] - 1s 3ms/step - loss: 0.1\n").conclusion == "no-failure"


SAID = "Expected a value of 7 which is outside the valid range"
NATIVE = f"W0000 00:00:1795827885.3 1 op_kernel.cc:1858] OP_REQUIRES failed at a.cc:1 : INVALID_ARGUMENT: {SAID}\n"
NO_END = FAILS.removesuffix("KeyError: 7\n")
RANKED = "".join(f"[rank3]: {line}\n" for line in FAILS.splitlines())
OF_A_NOTEBOOK = (
    "a.NotebookError: \n-----\nKeyError                 Traceback (most recent call last)\nCell In[7], line 3\n"
)
CARDINALITY = "ValueError: Data cardinality is ambiguous:\n  x sizes: 390, 369\n  y sizes: 390\n"
PRECONDITION = (
    "Exception in device=TPU:6: Failed precondition: From /job:a:\n"
    "2 root error(s) found.\n  (0) Failed precondition: Expected comparison type FLOAT.\n"
)


@cases(
    (
        "The replica 0 exited with a non-zero status of 1. Traceback (most recent call last): a.TooLateError: late\n",
        "a.TooLateError: late",
        "",
    ),
    (f"{OF_A_NOTEBOOK}----> 3 y = row['label']\n\nKeyError: 'label'\n", "KeyError: 'label'", ""),
    # The exception says the same as an earlier line, and its place is known.
    (
        NATIVE + FAILS.replace("KeyError: 7", f"a.InvalidArgumentError: {SAID}"),
        f"a.InvalidArgumentError: {SAID}",
        "train.py:3",
    ),
    # A traceback without its end.
    (f"W tensorflow/core/framework/op_kernel.cc:1152] Not found: ./a.jpg\n{NO_END}", ": ./a.jpg", ""),
    (
        (
            "step 4: loss = 0.3\nINFO:Error reported to Coordinator: <class 'a.NotFoundError'>, ./a.jpg\n"
            f"step 5: loss = 0.3\n{NO_END}"
        ),
        ": ./a.jpg",
        "",
    ),
    (NO_END, "", "train.py:3"),
    (PRECONDITION, ": Expected comparison type FLOAT.", ""),
    (f"Epoch 0:  16%|##  | 7395/45743 [13:13:43<68:36:00,  6.44s/it, loss: 0.08]{RANKED}", "KeyError: 7", "train.py:3"),
    *(
        (
            (
                f"usage: train.py [-h]\ntrain.py: error: {message}\n\n"
                "An exception has occurred, use %tb to see the full traceback.\n\nSystemExit: 2\n"
            ),
            f"train.py: error: {message}",
            "",
        )
        for message in (
            "unrecognized arguments: -f a.json",
            "the following arguments are required: --data",
            "argument --lr: bad value 'a'",
        )
    ),
    # An announcement stays with the message if it says what is wrong.
    (
        FAILS.replace("KeyError: 7\n", CARDINALITY),
        "ValueError: Data cardinality is ambiguous: x sizes: 390, 369",
        "train.py:3",
    ),
    (
        '    ValueError: Exception encountered when calling layer "a" (type B).\n    \n    Input 0 does not fit\n',
        "ValueError: Input 0 does not fit",
        "",
    ),
)
def test_own_error_and_its_place(log: str, said: str, program: str) -> None:
    own = text(log).own
    assert own is not None
    assert own.text.endswith(said) if said.startswith(":") else said in {"", own.text}
    assert program in {"", own.program}


def test_first_of_the_lines_that_fail_is_shown_first() -> None:
    lines = text("/a/graph.mm:233:0: error: shapes differ\n/a/b.mm:1304: failed assertion `Error: pass failed'\n").lines
    assert [line.line for line in lines] == [1, 2]


@cases(
    "12:00:01 ERROR saver - disk quota",
    "ERROR: saver",
    '{"level": "ERROR", "msg": "saver"}',
    "I0517 16:48:59.615311 140 run.py:255] a.RuntimeError: saver",
)
def test_error_at_the_end_is_shown(line: str) -> None:
    assert text(f"start\n{line}\n").conclusion == "not-recognised"
    assert text(f"{line}\n" + "done\n" * 40).conclusion == "no-failure"


def test_gzip_file_of_extreme_ratio_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training's output at 300 times its packed size, and an error at the end."""
    monkeypatch.setattr(inputs, "_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "train.log.gz"
    block = b"2026-01-01 step done\n" * 50_000
    members = gzip.compress(block, 9) * 128
    path.write_bytes(members + gzip.compress(f"{ERROR}\n".encode()))
    diagnosis = read(path)
    assert diagnosis.logs[0].bytes <= 101 * path.stat().st_size < 128 * len(block)
    assert (diagnosis.conclusion, len(diagnosis.notes)) == ("not-read", 1)


def test_gzip_file_of_zero_bytes_is_said_to_have_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdoctor_diagnose.inputs._UNPACKED_BYTES", 1 << 20)
    zeros, text = tmp_path / "zeros.log.gz", tmp_path / "train.log"
    zeros.write_bytes(gzip.compress(bytes(1 << 28)))
    text.write_text("a\n")
    logs, _ = logs_of([str(zeros), str(text)], io.BytesIO())
    (note,) = diagnose(logs, {}, {}).notes
    assert "zero bytes" in note
    assert "0 MiB" not in note


def test_gzip_file_of_common_ratio_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(b"step done\n" * 1_000_000 + f"{ERROR}\n".encode()))
    assert first(read(path))[0] == ID


def test_job_is_not_called_well_where_a_log_was_not_read(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(TRAINED)
    (tmp_path / "other.log.gz").write_bytes(gzip.compress(b"x" * 1000)[:-20])
    assert read(tmp_path / "train.log").conclusion == "no-failure"
    found = read(tmp_path)
    assert (found.conclusion, len(found.notes)) == ("not-read", 1)


def test_end_of_a_log_that_is_partly_read_is_not_the_end_of_the_job() -> None:
    line = b"NCCL INFO Connected all trees\n"

    def blocks() -> Iterator[bytes]:
        yield line
        raise PartlyReadError("too large")

    assert diagnose([Log("train.log", lambda: iter([line]))], {}, {}).conclusion == "cause"
    assert diagnose([Log("train.log", blocks)], {}, {}).conclusion == "not-read"


@cases(
    ("step 10 loss=NaN", True),
    ("{'loss': nan, 'step': 10}", True),
    ('{"step": 10, "loss":NaN}', True),
    ("epoch 2, loss nan", True),
    ("[INFO] iter 20 | loss | nan | lr 1e-3", True),
    ("loss: tensor(nan)", True),
    ("Train loss : NaN", True),
    ("loss: -nan(ind)", True),
    ("val_loss is nan", True),
    ("loss_nan: 0", False),
    ("no nan in the loss", False),
    ("skips with loss nan: 0", False),
    ("loss=nanosecond", False),
)
def test_loss_that_is_not_finite_is_named_in_any_notation(line: str, *, is_found: bool) -> None:
    assert ["nan_loss" in cause.id for cause in text(f"{line}\n").causes] == [True] * is_found


@cases(
    ("h5py/__init__.py:36: RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility.", None),
    ("ValueError: numpy.dtype size changed, may indicate binary incompatibility.", "numpy2_abi"),
    (
        "I1025 xla_bridge.py:357] Unable to initialize backend 'cuda': module 'jaxlib.xla_extension' has no attribute",
        "jax_without_cuda",
    ),
    ("AttributeError: module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'", "jax_versions"),
)
def test_line_that_only_looks_like_a_failure_is_not_taken_for_it(line: str, name: str | None) -> None:
    assert [cause.id for cause in text(f"{line}\n").causes] == ([name] if name else [])
