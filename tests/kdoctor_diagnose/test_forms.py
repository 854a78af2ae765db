"""Exceptions of each class in the forms in which tracebacks are pasted, and signals as they are reported."""

import json

from helpers.cases import cases
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.model import Diagnosis

TITLE = "Traceback (most recent call last)"
OWN = '  File "/home/ada/work/train.py", line 12, in <module>\n    model.fit(data)\n'
LIBRARY = '  File "/opt/v/lib/python3.11/site-packages/other/thing.py", line 3, in g\n    raise x\n'
PLAIN = f"{TITLE}:\n{OWN}{LIBRARY}<end>\n"
OLD_CELL = f"NAME{' ' * 30}{TITLE}\n<cell>\n     11 \n---> 12 model.fit(data)\n\n"
NAMES = (
    "KeyError", "OSError", "StopIteration", "KeyboardInterrupt", "Exception", "a.TooLate", "a.b.Gone", "_queue.Empty",
    "socket.gaierror", "subprocess.TimeoutExpired", "concurrent.futures.process.BrokenProcessPool",
)  # fmt: skip
SAID = "the frobnicator (3, 4) was not greased"
SIGNALS = {
    4: ("SIGILL", "illegal_instruction"), 6: ("SIGABRT", "aborted"), 7: ("SIGBUS", "bus_error"),
    8: ("SIGFPE", "floating_point_exception"), 9: ("SIGKILL", "killed_by_signal_9"),
    11: ("SIGSEGV", "segmentation_fault"), 15: ("SIGTERM", "terminated"),
}  # fmt: skip


def text(log: str) -> Diagnosis:
    return diagnose_text(log, {}, {})


def wrapped(log: str) -> str:
    """The log as a terminal of 72 columns breaks its lines."""
    return "".join(f"{line[at : at + 72]}\n" for line in log.splitlines() for at in range(0, len(line), 72))


FORMS = {
    "in code": f"`{PLAIN.strip()}`\n",
    "without margins": "".join(f"{line.strip()}\n" for line in PLAIN.splitlines()),
    "of a runner": "".join(f"2024-01-05 10:00:01.123 stderr {line}\n" for line in PLAIN.splitlines()),
    "wrapped": wrapped(PLAIN),
    "of VS Code": f"Exception has occurred: NAME\n{SAID}\n{OWN}",
    "of IPython 7": OLD_CELL.replace("<cell>", "<ipython-input-7-0a1b2c3d4e5f> in <module>()") + "<end>\n",
    "of IPython 8": OLD_CELL.replace("<cell>", "Cell In[7], line 12") + "<end>\n",
    "of Databricks": OLD_CELL.replace("<cell>", "<command-1071304970804777> in <module>") + "<end>\n",
    "of Colab": OLD_CELL.replace("<cell>", "[<ipython-input-7-0a1b2c>](https://localhost:8080/#) in <cell line: 1>()")
    + "3 frames\n[/usr/lib/python3.10/dist-packages/a.py](https://localhost:8080/#) in f(x)\n----> 3 raise\n<end>\n",
    "chained": f"{TITLE}:\n{LIBRARY}<end>\n\nDuring handling of the above exception, another exception occurred:\n\n"
    f"{TITLE}:\n{OWN}RuntimeError: no\n",
    "of a field in JSON": json.dumps({"msg": "job failed", "exc_info": PLAIN, "level": "error"}),
}


@cases(*FORMS)
def test_exception_of_any_class_is_read_in_each_form(form: str) -> None:
    for name in NAMES:
        short = name.rpartition(".")[2] if TITLE in FORMS[form].splitlines()[0][4:] else name
        log = FORMS[form].replace("<end>", f"{short}: {SAID}").replace("NAME", short)
        found = text(f"start of the job\n{log}")
        said = found.own.text if found.own else found.causes[0].first.text
        assert SAID in said
        assert name.rpartition(".")[2] in said
        assert not found.own or (found.own.program or "").endswith(":12"), name


@cases(
    "mpirun noticed that process rank 3 with PID 0 on node n7 exited on signal {number}.",
    "command terminated with exit code {code}",
    "worker 3 exited with exit code -{number}",
    "subprocess.CalledProcessError: Command 'python' died with <Signals.{name}: {number}>.",
    "subprocess.CalledProcessError: Command 'python' returned non-zero exit status {code}.",
    "*** {name} received at time=1734086759 on cpu 3 ***",
    "*** Received signal {number} ***",
    "#  {name} (0xb) at pc=0x000000000055d91b, pid=1592523, tid=1592523",
    "[n7:42] Signal: unknown (signal {number})",
    "  exitcode  : -{number} (pid: 4242)",
    "Process 3 exit with status code {code}.",
    "Exited with signal termination: {number}.",
    "4242.batch   FAILED     0:{number}",
    "exit_status  {code}",
    "INFO - Task exited with return code Negsignal.{name}",
    "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal {name}",
    "A worker was unexpectedly terminated. The exit codes of the workers are {{{name}(-{number})}}",
)
def test_signal_that_ended_a_process_is_named(line: str) -> None:
    for number, (name, known) in SIGNALS.items():
        found = text(f"step 3: loss 0.3\n{line.format(number=number, name=name, code=128 + number)}\n")
        assert [cause.id for cause in found.causes] == [known]


@cases("Raw kernel process exited code: 3221226505", "exit code -1073740791", "exit status 3221226505 (0xC0000409)")
def test_status_of_windows_is_read_in_each_notation(line: str) -> None:
    assert [cause.id for cause in text(f"Epoch 1/3\n{line}\n").causes] == ["windows_fail_fast"]


def test_reason_of_a_command_that_failed_is_the_line_before_the_traceback() -> None:
    failed = "subprocess.CalledProcessError: Command 'tar' returned non-zero exit status 2."
    found = text(f"tar: val.tar: Cannot open\n{PLAIN.replace('<end>', failed)}")
    assert "val.tar" in found.causes[0].reasons[0]


@cases(
    "train.sh: line 1: 19927 CPU time limit exceeded python train.py",
    "It ends with `mine.errors.LateError: no slice 77` here",
)
def test_end_that_a_script_or_a_sentence_quotes_is_a_failure(line: str) -> None:
    found = text(f"Epoch 2/4\n{line}\n")
    assert found.own is not None
    assert found.own.text.endswith(("train.py", "LateError: no slice 77"))
