"""How the logs show that a job ended: well, with a failure, or not at all."""

import pytest

from helpers.cases import cases
from kdoctor.failures.known import KnownFailure, load_failures
from kdoctor_diagnose.diagnose import diagnose, diagnose_text
from kdoctor_diagnose.inputs import Log
from kdoctor_diagnose.model import Diagnosis

ERROR = "RuntimeError: Mixing different tf.distribute.Strategy objects: one is not the other"
FAILS = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n    f()\nKeyError: 7\n'
LAST_BAR = "9/9 [====] - 1s 3ms/step - loss: 0.1\n"
RAN_OUT = "/a/epoch_iterator.py:1: UserWarning: Your input ran out of data; interrupting training\n"
LONG_BAR = "\r".join(f"{step}/999 [====] - 1s 3ms/step - loss: 0.1" for step in range(1, 900))
NO_GPUS = "Could not find cuda drivers on your machine, GPU will not be used.\n"
NO_CUDA = "Could not load dynamic library 'libcudnn.so.8'; dlerror: no such file\n"


def text(log: str) -> Diagnosis:
    return diagnose_text(log, {}, {})


@cases(
    (f"{FAILS}step 10 loss 0.5\nstep 20 loss 0.4\n", "not-recognised"),  # printed before, and written at the end
    (FAILS + "step 10 loss 0.5\n" * 900 + "saved\n", "no-failure"),
    (f"{FAILS}2026-11-28 01:00:00 INFO step 10: loss 0.5\nsaved\n", "no-failure"),
    (f"{FAILS}INFO: Training completed successfully.\n", "no-failure"),
    (f"{FAILS}INFO: Training failed successfully.\n", "not-recognised"),
    (f"{FAILS}Job finished\n", "not-recognised"),
    (f"{RAN_OUT}{LAST_BAR}{FAILS}", "not-recognised"),
    (f"{RAN_OUT}Epoch 2/9\n{LONG_BAR}\nEpoch 3/9\n{LONG_BAR}", "no-end"),
    (f"{RAN_OUT}Epoch 2/9\n{LONG_BAR}", "cause"),
    ("1/1 [====] - 1s 3ms/step\nProcessing time 0.02\n" * 9, "no-end"),
    ("E0000 00:00:1796084188.4 28811 util.cc:131] only with AVX-512. Falling back to Eigen.\n", "no-end"),
    (f"Epoch 2/2\n{LAST_BAR}Caught signal 15\nsaved\n", "no-failure"),
    (f"Epoch 2/3\n{LAST_BAR}Caught signal 15\nsaved\n", "consequence"),
    (f"Epoch 2/2\n{LAST_BAR}Caught signal 15\n", "consequence"),
    (f"Epoch 2/2\n8{LAST_BAR}Caught signal 15\nsaved\n", "consequence"),
)
def test_only_what_was_surely_written_later_shows_that_a_job_went_on(log: str, conclusion: str) -> None:
    assert text(log).conclusion == conclusion


@pytest.mark.parametrize("failure", load_failures().failure_modes[::8], ids=lambda failure: failure.id)
def test_exception_at_the_end_is_a_failure_whatever_a_training_passed_before(failure: KnownFailure) -> None:
    for example in failure.examples:
        found = text(f"{example.log}\nEpoch 1/1\n{LAST_BAR}{FAILS}").conclusion
        assert found not in {"no-failure", "no-end"}


LSF = "Your job looked like:\n{}.\nResource usage summary:\nThe output (if any) is above this job summary.\n"


def test_summary_of_lsf_says_how_a_job_ended() -> None:
    skipped = "Skipping registering GPU devices...\nmetric: 0.4 on a\n"
    well = text(skipped + LSF.format("Successfully completed"))
    assert (well.conclusion, [cause.id for cause in well.also]) == ("no-failure", ["tf2161_runpath"])
    assert text(LSF.format("Exited with exit code 3")).conclusion == "not-recognised"
    killed = text(LSF.format("TERM_OWNER: job killed by owner.\nExited with exit code 143"))
    assert [cause.id for cause in killed.causes] == ["cancelled"]


@cases(
    "Trace/breakpoint trap",
    "Hangup (core dumped)",
    "make: *** [train] Error 1",
    "Command exited with non-zero status 3",
    "  Exit Code:    1",
    "State: TIMEOUT (exit code 0)",
    "Your session crashed after using all available RAM.",
    "python: can't open file 'train.py'",
    "terminate called after throwing an instance of 'std::runtime_error'",
    '  File "train.py", line 3, in f\n    f()',
    "segmentation fault",
    "Expected all tensors to be on the same device, but found at least two devices",
    "----> 3 model.fit(x)",
    "File /a/keras/src/trainer.py:12, in fit(self)",
    f'{FAILS[:34]}\n  File "/a/git/src/train.py", line 3, in f\n    save(f"s3/step_{{n}}", loss=0.5)',
)
def test_last_line_that_speaks_of_a_failure_is_one(line: str) -> None:
    assert text(f"start\n10/10 [====] - 1s 3ms/step - loss: 0.1\n{line}\n").conclusion in {"not-recognised", "cause"}


@cases(
    "0 errors, 0 failed batches",
    "failed samples: 0",
    "val error 0.31",
    "Error: 0.31",
    "finished without failures",
    "WARNING:tensorflow:without it, workers restart training if any worker fails.",
    "State: Completed, Exit Code: 0",
    "2026-11-28 01:00:00.000000: I a/agent.cc:455] Polling for error is cancelled",
)
def test_last_line_with_a_metric_or_without_failures_is_none(line: str) -> None:
    assert text(f"start\n10/10 [====] - 1s 3ms/step - loss: 0.1\n{line}\n").conclusion == "no-failure"


def test_message_of_each_machine_without_gpus_is_not_a_certain_cause() -> None:
    line = "E0000 00:00:1795715690.299662 7 cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)\n"
    assert [text(log).causes for log in (line, f"{NO_GPUS}{line}", NO_GPUS)] == [[], [], []]
    assert text(f"{NO_GPUS}Num GPUs Available: 0\n").causes
    alone, looked = text(line), text(f"{line}Num GPUs Available:  0\n")
    assert (alone.conclusion, [cause.certainty for cause in alone.also]) == ("no-end", ["possible"])
    assert [cause.certainty for cause in looked.causes] == ["likely"]
    raised = text(FAILS.replace("KeyError: 7", "ImportError: libcuda.so.1: cannot open shared object file"))
    assert [(cause.id, cause.certainty) for cause in raised.causes] == [("libcuda_missing", "certain")]
    assert text(f"{line}{{'loss': [0.3]}}\n").conclusion == "no-failure"


@cases(
    (f"Epoch 2/2\n{LAST_BAR}", "no-failure"),
    (f"Epoch 1/2\n{LAST_BAR}Epoch 2/2\n{LAST_BAR}0.31 on the test images\n", "no-failure"),
    (f"Epoch 1/2\n{LAST_BAR}bye\n{{'loss': [0.3]}}\n", "no-failure"),
    ("start\nINFO: model saved to /data/model.keras\n", "no-failure"),
    (f"Epoch 1/9\n{LAST_BAR}Epoch 1: early stopping\n", "no-failure"),
    (LAST_BAR, "no-failure"),
    (f"Epoch 1/2\n{LAST_BAR}", "no-end"),
    (f"Epoch 1/2\n{LAST_BAR}please set data.root\n", "no-end"),  # sys.exit with words
    (f"Epoch 2/2\n{LAST_BAR.replace('9/9', '3/9')}", "no-end"),
    ("Epoch 2/2\n3/9 [=>..] - ETA: 1s - loss: 0.1\n", "no-end"),
    ("start\nnot saved\n", "no-end"),
    ("/lib/keras/saving.py:384: UserWarning: Error in loading the saved optimizer state.\n", "no-end"),
    ("2020: W tensorflow/core/a.cc:217] Out of range: End of sequence\n\t [[{{node IteratorGetNext}}]]\n", "no-end"),
    ("please set data.root\n", "no-end"),
    ("I0000 00:00:1795715690.299662 7 cpu_feature_guard.cc:227] This TensorFlow binary is optimized\n", "no-end"),
)
def test_job_is_called_well_only_by_a_result_or_a_last_step(log: str, conclusion: str) -> None:
    found = text(log)
    assert (found.conclusion, found.causes) == (conclusion, [])
    last = " ".join(log.splitlines()[-1].split())
    assert [line.text for line in found.lines] == ([last] if conclusion == "no-end" else [])


def test_job_is_called_well_only_if_no_log_of_it_stops_before() -> None:
    ended, stopped = f"Epoch 2/2\n{LAST_BAR}".encode(), f"Epoch 1/2\n{LAST_BAR}".encode()
    both = [Log("1.log", lambda: iter([ended])), Log("2.log", lambda: iter([stopped]))]
    assert (diagnose(both[:1], {}, {}).conclusion, diagnose(both, {}, {}).conclusion) == ("no-failure", "no-end")


@cases(
    (f"{FAILS}Epoch 2/2\n{LAST_BAR}", "not-recognised"),  # of the other process
    (f"Epoch 2/2\n{LAST_BAR}", "no-end"),
    (f"Epoch 2/2\n{LAST_BAR}Epoch 2/2\n{LAST_BAR}", "no-failure"),
)
def test_training_of_one_of_several_processes_says_nothing_about_the_others(end: str, conclusion: str) -> None:
    begin = f"Epoch 1/2\nEpoch 1/2\n{LAST_BAR}{LAST_BAR}"
    found = text(begin + end)
    assert (found.conclusion, len(found.notes)) == (conclusion, 1)
    assert text(begin.replace("Epoch 1/2\n", "", 1) + FAILS + f"Epoch 2/2\n{LAST_BAR}").conclusion == "no-failure"


@cases((0, "not-recognised"), (1, "no-failure"))
def test_named_process_that_fails_while_another_one_goes_on_has_failed(rank: int, conclusion: str) -> None:
    begun, went_on = (f"Epoch {epoch}/2\n{LAST_BAR}" for epoch in (1, 2))
    parts = ((0, begun), (1, begun), (1, FAILS), (rank, went_on))
    log = "".join(f"[rank{name}]: {line}\n" for name, part in parts for line in part.splitlines())
    assert text(log).conclusion == conclusion


@cases("", LAST_BAR, f"E0000 00:00:1795715690.299662 7 cuda_platform.cc:52] failed\n{LAST_BAR}")
def test_crash_of_one_of_several_processes_is_the_cause(between: str) -> None:
    end = f"{ERROR}\nEpoch 2/2\n{LAST_BAR}"
    assert text(f"Epoch 1/2\n{between}Epoch 1/2\n{end}").conclusion == "cause"
    assert text(f"Epoch 1/2\n{between}{end}").conclusion == "no-failure"
    named = "".join(f"[rank1]: {line}\n" for line in end.splitlines())
    assert text(f"Epoch 1/2\n{between}Epoch 1/2\n{named}").conclusion == "no-end"  # it went on itself


def test_job_that_was_started_again_is_one_process() -> None:
    assert text(f"Epoch 1/2\n{FAILS}Epoch 1/2\n{LAST_BAR}Epoch 2/2\n{LAST_BAR}").conclusion == "no-failure"
    assert text(f"Epoch 1/1\n{LAST_BAR}Epoch 1/1\n{LAST_BAR}").notes == []


@cases((NO_CUDA, "certain"), (f"{NO_CUDA}[]\n", "certain"), (f"{NO_CUDA}config.yaml: please set data.root\n", "likely"))
def test_last_words_of_a_program_are_evidence_against_missing_gpus(log: str, certainty: str) -> None:
    cause = text(log).causes[0]
    assert (cause.id, cause.certainty, len(cause.against)) == (
        "cuda_library_missing",
        certainty,
        int(certainty != "certain"),
    )


def test_lines_that_continue_the_last_one_do_not_hide_it() -> None:
    line = "Error: the queue exited with error status."
    found = text(f"start\n{line}\n\t(null)\n    label = <none>\n    device = <AGXG13XDevice: 0x12da25600>\n")
    assert (found.conclusion, [item.text for item in found.lines]) == ("not-recognised", [line])


@cases(
    ("INFO:tensorflow:global step 491: loss: 1.01 (14.9 sec/step)\nloss is done\nclosing\n", "no-end"),
    ("Epoch 9: 100%|████| 235/235 [00:03<00:00, 77.0it/s]\nNet(\n  (fc1): Linear()\n)\n", "no-failure"),
    (" 32%|███       | 32/101 [00:15<00:33,  2.09it/s]\n", "no-end"),
    ("step 3\nTotal training time: 4:49:16.7 (0.8678s / it)\n", "no-failure"),
    ("start\nProcess finished with exit code 1\n", "not-recognised"),
)
def test_only_a_last_step_or_a_result_shows_that_a_job_did_its_work(log: str, conclusion: str) -> None:
    assert text(log).conclusion == conclusion


def test_exit_code_is_no_answer_where_a_line_says_more() -> None:
    for said in ("Training failed: No module named 'x'", "Node: 'a'\nlabels have no shape\n\t [[{{node a}}]] [Op:b]"):
        found = text(f"start\n{said}\n\nProcess finished with exit code 1\n").own
        assert getattr(found, "text", "nothing") in said


START = "nohup: ignoring input\n"
OTHER = 'Traceback (most recent call last):\n  File "train.py", line 9, in g\n    g()\nIndexError: 9\n'


@cases(
    (f"{START}{FAILS}{START}{OTHER}", "IndexError: 9"),
    (f"{START}{FAILS}{START}{OTHER}{START}", "IndexError: 9"),
    (f"{START}{FAILS}{START}", "KeyError: 7"),
    (f"Epoch 1/2\n{FAILS}Epoch 2/2\n{OTHER}", "KeyError: 7"),
)
def test_last_run_counts_where_several_wrote_to_one_file(log: str, said: str) -> None:
    assert getattr(text(log).own, "text", "") == said


@cases("stderr: ", "2026-11-20 03:12:44,102 - train - ERROR - ", "[80746] (worker) ")
def test_what_a_program_wrote_before_each_line_is_no_part_of_it(prefix: str) -> None:
    own = text("".join(f"{prefix}{line}\n" for line in FAILS.splitlines())).own
    assert own is not None
    assert (own.text, own.program) == ("KeyError: 7", "train.py:3")


def test_lines_that_a_terminal_wrapped_are_joined_and_keep_their_places() -> None:
    long = "ValueError: " + " ".join("abcdefghijklmnopqrstuvwxyz"[:size] for size in range(3, 26, 2))
    lines = [*FAILS.splitlines()[:-1], long]
    found = text("".join(f"{line[at : at + 80]}\n" for line in lines for at in range(0, len(line), 80)) + "end\n")
    assert found.own is not None
    assert (found.own.text, found.own.first.line) == (long, 4)


def test_error_without_a_title_has_the_place_before_it() -> None:
    own = text('File "train.py", line 3, in f\n    f()\nInvalidArgumentError: Graph execution error:\n\nbad x\n').own
    assert own is not None
    assert (own.text, own.program) == ("InvalidArgumentError: bad x", "train.py:3")


WAITS = f"Epoch 1/2\n{LAST_BAR}Epoch 2/2\nException in thread Thread-1 (read):\n{FAILS}3/9 [=>..] - ETA: 1s - loss: 0.1"


@cases(
    (WAITS, "not-recognised"),
    (WAITS.replace("3/9", "9/9").replace("ETA: 1s", "1s 3ms/step"), "no-failure"),
    (f"{WAITS}\n2026-11-28 01:00:00 INFO step 10: loss 0.5\n{FAILS.replace('7', '8')}", "not-recognised"),
)
def test_exception_of_a_thread_is_the_answer_only_where_nothing_else_says_how_the_job_ended(
    log: str, conclusion: str
) -> None:
    found = text(log)
    assert (found.conclusion, len(found.notes)) == (conclusion, int(log == WAITS))
    assert (found.own and found.own.text) == {"no-failure": None}.get(
        conclusion, "KeyError: 7" if log == WAITS else "KeyError: 8"
    )


@cases("Instance lost: evicted", "*** stack smashing detected ***: terminated", "Killed", "libc++abi: terminating: x")
def test_words_behind_a_progress_bar_end_a_log_as_those_on_a_line_do(line: str) -> None:
    bar = "Epoch 2/2\n3/9 [=>..] - 1s 3ms/step - loss: 0.1"
    assert text(f"{bar}{line}\n").conclusion == text(f"{bar}\n{line}\n").conclusion != "no-end"
