"""Which failure is the cause, where several are in a log: constructed failures, in every order."""

from typing import Any

from helpers.cases import cases
from kdoctor.failures.known import KnownFailure, KnownFailures, load_failures
from kdoctor_diagnose.causes import Verdict, conclude
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.found import Event, Scan
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.model import Diagnosis
from kdoctor_diagnose.own_error import owner_of
from kdoctor_diagnose.report.sections import heading
from kdoctor_diagnose.tracebacks import is_library


def failure(name: str, **changes: Any) -> KnownFailure:
    return KnownFailure(**{"id": name, "kind": "crash", "symptom": name, "cause": name, "source": ["x"], **changes})


def judge(*failures: KnownFailure, progress: int = 0, passed: int = 0) -> Verdict:
    """The verdict of a log with one failure on each line."""
    events = [
        Event(item, 1, 0, line, f"line {line}", {}, None, None, last=line) for line, item in enumerate(failures, 1)
    ]
    tails = {0: [(passed, Line("Epoch 3/3"))]} if passed else {}
    seen: dict[str, Any] = {"progress": {0: progress}, "passed": {0: passed}, "tails": tails}
    found = Scan(events=events, names=["log"], lines=[len(events)], sizes=[1], **seen)
    return conclude(found, KnownFailures(failure_modes=list(failures)))


CAUSE, ECHO = failure("cause"), failure("echo", follows=True)


def diagnosed(log: str) -> Diagnosis:
    return diagnose_text(log, {}, {})


def names(verdict: Verdict) -> list[str]:
    return [group.failure.id for group in verdict.causes]


def test_consequence_is_not_the_cause_before_or_after_it() -> None:
    assert names(judge(CAUSE, ECHO)) == ["cause"]
    assert names(judge(ECHO, CAUSE)) == ["cause"]
    doubted = failure("echo", follows=True, needs={"keras": ">=3"})
    assert names(judge(doubted, CAUSE)) == ["cause"]
    assert names(judge(ECHO)) == ["echo"]


def test_consequence_is_less_sure_than_a_cause() -> None:
    assert judge(CAUSE).causes[0].certainty == "certain"
    assert judge(ECHO).causes[0].certainty == "likely"


def test_training_that_went_on_contradicts_a_cause_and_not_a_consequence() -> None:
    assert judge(CAUSE, progress=5).causes[0].certainty == "likely"
    assert judge(CAUSE, CAUSE, progress=2).causes[0].certainty == "certain"  # until it came again
    assert judge(ECHO, progress=5).causes[0].against == []
    assert [names(judge(CAUSE, CAUSE, passed=line)) for line in (2, 3)] == [["cause"], []]


def test_last_exception_of_a_process_contradicts_a_known_one_that_did_not_lead_to_it() -> None:
    trace = 'Traceback (most recent call last):\n  File "{}.py", line 3, in f\n    f()\n{}\n'
    known, end = trace.format("a", "OSError: [Errno 24] Too many open files"), trace.format("train", "KeyError: 7")
    far, handled = "words\n" * 70, "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = {between: diagnosed(known + between + end) for between in ("", far, far + handled)}
    assert [log.causes[0].certainty for log in found.values()] == ["certain", "likely", "certain"]
    assert "KeyError: 7" in found[far].causes[0].against[0]
    ends = [diagnosed(f"{known}{far}{epochs}{end}") for epochs in ("Epoch 3/9\n", "Epoch 3/9\nEpoch 4/9\n")]
    assert [getattr(log.own, "text", "") for log in ends] == ["", "KeyError: 7"]


def test_place_where_an_exception_was_raised_says_what_its_words_mean() -> None:
    log = 'Traceback (most recent call last):\n  File "{}", line 3, in f\nOSError: [Errno 28] No space left on device\n'
    places = ("/usr/lib/python3.9/multiprocessing/synchronize.py", "/usr/lib/python3.9/shutil.py")
    found = [diagnosed(log.format(place)).causes for place in places]
    assert [[cause.id for cause in causes] for causes in found] == [["shared_memory_full"], ["disk_full"]]


def test_failure_of_newer_hardware_is_not_the_cause_in_an_older_log() -> None:
    new = failure("new", since="2025-01-01")
    for time, expected in ((1735689599.0, []), (1735689600.0, ["new"]), (None, ["new"])):
        event = Event(new, 1, 0, 1, "line", {}, None, time, last=1)
        found = Scan(events=[event], names=["log"], lines=[1], sizes=[1])
        verdict = conclude(found, KnownFailures(failure_modes=[new]))
        assert names(verdict) == expected
        assert bool(verdict.ruled_out) is not bool(expected)


def test_failures_are_in_the_order_of_their_logs_unless_each_has_a_time() -> None:
    for times, expected in (((2.0, 1.0), "other"), ((2.0, None), "one")):
        failures = [failure("one"), failure("other")]
        events = [
            Event(item, 1, log, 1, "line", {}, None, time, last=1)
            for log, (item, time) in enumerate(zip(failures, times, strict=True))
        ]
        found = Scan(events=events, names=["a", "b"], lines=[1, 1], sizes=[1, 1])
        assert names(conclude(found, KnownFailures(failure_modes=failures))) == [expected]


def test_fix_of_some_releases_needs_one_of_them_in_the_log() -> None:
    error = "LossScaleOptimizer\nRuntimeError: `merge_call` called while defining a new graph or a tf.function\n"
    for head, first in (("", "Use mixed"), ("keras==3.1.0\n", "Use mixed"), ("keras==3.10.0\n", "Pass jit_compile")):
        assert diagnose_text(head + error, {}, {}).causes[0].fix[0].do.startswith(first)


def test_headline_is_the_symptom_if_the_log_says_all_of_it() -> None:
    known = load_failures().by_id["keras3_multi_worker_fit"]
    for rest, expected in (("{", False), ("{}) with an unsupported type", True)):
        (cause,) = diagnose_text(f"ValueError: Attempt to convert a value (PerReplica:{rest}\n", {}, {}).causes
        assert (cause.id, cause.symptom == known.symptom) == (known.id, expected)


def test_failure_that_another_one_explains_or_another_line_excludes_is_no_alternative() -> None:
    wide, narrow = failure("wide"), failure("narrow", explains=["wide"])
    for explained, at, others in ((narrow, [], []), (failure("narrow"), [], ["wide"]), (failure("narrow"), [2], [])):
        items = [(explained, 1), (wide, 1), *((explained, line) for line in at)]
        events = [Event(item, 1, 0, line, f"line {line}", {}, None, None, last=line) for item, line in items]
        found = Scan(events=events, names=["log"], lines=[1], sizes=[1])
        verdict = conclude(found, KnownFailures(failure_modes=[explained, wide]))
        assert verdict.causes[0].alternatives == others
    (cause,) = diagnosed("ResourceExhaustedError: OOM when allocating tensor with shape[2304,384]\n").causes
    assert (cause.id, cause.certainty, cause.alternatives) == ("gpu_out_of_memory", "likely", ["memory_allocation"])


def test_only_a_possible_consequence_gives_way_to_what_is_wrong_with_the_job() -> None:
    mild = failure("mild", kind="silent")
    assert names(judge(mild, failure("end", certainty="possible"))) == ["end"]
    assert names(judge(mild, failure("end", certainty="possible", follows=True))) == ["mild"]
    assert names(judge(mild, ECHO)) == ["echo"]


def test_place_in_the_program_is_found_where_the_title_of_the_traceback_is_missing() -> None:
    frames = '  File "/a/train.py", line 3, in f\n    g()\n  File "/usr/lib/python3.6/csv.py", line 1, in g\n    h()\n'
    found = [diagnosed(f"{frames}{between}FileNotFoundError: no a.csv\n").own for between in ("", "step 1\n")]
    assert [own.program for own in found if own] == ["train.py:3", None]


def test_refusal_of_guard_names_the_call_in_the_program() -> None:
    frames = '  File "/a/train.py", line 3, in f\n    g()\n  File "/kdoctor_job/preflight.py", line 1, in g\n    h()\n'
    title = "Traceback (most recent call last):\n"
    own = diagnosed(f"{title}{frames}kdoctor.PreflightError: NOT READY in 2 s: x (job.trains)\n- x\n  Fix: y\n").own
    assert own is not None
    assert (own.program, "the fixes below" in own.look) == ("train.py:3", True)


def test_name_that_a_module_of_the_program_lacks_is_its_own_error() -> None:
    for folder, owner in (("home/ada", "program"), ("opt/lib/python3.9/site-packages", "environment")):
        assert owner_of(f"ImportError: cannot import name 'f' from 'data' (/{folder}/data.py)") == owner
    assert owner_of("XlaRuntimeError: INTERNAL: during context [hlo verifier]: other shape") == "environment"


@cases(
    ("AttributeError: x has no attribute 'y'", "/v/lib/python3.9/site-packages/other/a.py", "environment"),
    ("AttributeError: x has no attribute 'y'", "/v/lib/python3.9/site-packages/keras/a.py", "program"),
    ("AttributeError: x has no attribute 'y'", "/usr/lib/python2.7/importlib/__init__.py", "environment"),
    ("AttributeError: x has no attribute 'y'", "/home/ada/train.py", "program"),
    ("TypeError: got an unexpected keyword argument 'x'", "/usr/lib/python3.11/inspect.py", "program"),
    ("AttributeError: x has no attribute 'y'", "/v/lib/python3.9/site-packages/keras_core/a.py", "program"),
    ("Exception: URL fetch failure on https://a: None -- [SSL: CERTIFICATE_VERIFY_FAILED]", "", "environment"),
    ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "", "machine"),
    ("UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3 in position 3", "", "environment"),
    ("google.api_core.exceptions.DeadlineExceeded: 504 Deadline Exceeded", "", "machine"),
    ("OSError: Unable to open file (file read failed: errno = 21, error message = 'Is a directory'", "", "undecided"),
    ("KeyError: 'y'", "pandas/_libs/index.pyx", "data"),
    ("KeyError: 'y'", "/home/ada/pandas/train.py", "program"),
    ("ZeroDivisionError: by zero", "/v/lib/python3.9/site-packages/PIL/JpegImagePlugin.py", "data"),
    ("ZeroDivisionError: by zero", "/v/lib/python3.9/site-packages/keras/preprocessing/image.py", "data"),
    ("EOFError", "/usr/lib/python3.9/multiprocessing/connection.py", "undecided"),
    ("EOFError", "/home/ada/train.py", "data"),
    ("TabError: inconsistent use of tabs", "", "program"),
    ("RuntimeError: anything", "", "undecided"),
    ("Cleanup error: Unavailable: OS Error", "", "machine"),
    ("XlaRuntimeError: INVALID_ARGUMENT: x", "", "program"),
    ("XlaRuntimeError: UNKNOWN: x", "", "undecided"),
    ("InternalError: x", "", "environment"),
    ("RuntimeError: No CUDA GPUs are available", "", "machine"),
    ("InvalidArgumentError: Cannot batch tensors with different shapes", "", "data"),
    ("OSError: cannot identify image file 'a.jpg'", "", "data"),
    ("OSError: [Errno 16] Device or resource busy: '.nfs1'", "", "machine"),
    ("ModuleNotFoundError: No module named 'imgaug'", "/home/ada/train.py", "environment"),
    ("ImportError: No module named imgaug", "", "environment"),
    ("ModuleNotFoundError: No module named 'data_loader'", "/home/ada/train.py", "program"),
    ("ModuleNotFoundError: No module named 'yolo.ops'", "/home/ada/yolo/train.py", "program"),
    ("ModuleNotFoundError: No module named 'utils'", "/v/lib/python3.9/site-packages/other/a.py", "environment"),
)
def test_owner_depends_on_class_status_and_the_file_that_raised_it(error: str, file: str, owner: str) -> None:
    assert owner_of(error, file) == owner


def test_exception_on_the_way_through_the_program_is_its_error_unless_it_says_more() -> None:
    assert is_library("/src/keras/keras/models.py")
    assert not is_library("/src/keras/models.py")
    assert owner_of("pyarrow.lib.ArrowInvalid: no Point", program="train.py:3") == "program"
    assert owner_of("ray.exceptions.LocalRayletDiedError: x", program="train.py:3") == "machine"
    cut = diagnose_text('Traceback (most recent call last):\n  File "train.py", line 3, in f\n    f()\n', {}, {}).own
    assert cut is not None
    assert (cut.program, cut.owner) == ("train.py:3", "undecided")


def test_clue_that_belongs_to_the_message_makes_it_no_surer() -> None:
    for needed, certainty in ((True, "likely"), (False, "certain")):
        item = failure("x", certainty="likely", clue_needed=needed)
        event = Event(item, 1, 0, 1, "line", {}, None, None, last=1)
        found = Scan(events=[event], names=["log"], lines=[1], sizes=[1], clues={"x"})
        assert conclude(found, KnownFailures(failure_modes=[item])).causes[0].certainty == certainty


def test_cause_that_lists_different_reasons_is_not_certain() -> None:
    listed = "NCCL: unhandled system error\n", "ImportError: cannot import name '__version__' from 'keras'\n"
    assert [diagnose_text(line, {}, {}).causes[0].certainty for line in listed] == ["likely", "likely"]


def test_loss_that_is_not_finite_is_the_answer_where_the_traceback_after_it_is_cut() -> None:
    cut = "step 9 loss is nan\nTraceback (most recent call last):\n"
    assert [cause.id for cause in diagnose_text(f"{cut}  File 'a'\n", {}, {}).causes] == ["nan_loss"]
    assert diagnose_text(f"{cut}  f()\nKeyError: 7\n", {}, {}).causes == []


def test_message_of_a_failure_that_another_line_must_confirm_stays_an_error_without_it() -> None:
    """Keras' message about a class is the cause only where the log shows that a model is loaded."""
    error = "TypeError: Error when deserializing class 'Dense' using config={'name': 'dense'}."
    assert diagnose_text(f"{error}\n", {}, {}).conclusion == "not-recognised"
    assert diagnose_text(f"in load_model\n{error}\n", {}, {}).conclusion == "cause"


def test_python_warning_is_not_what_ended_a_job_that_raised_an_exception_later() -> None:
    warned = "/a b/epoch_iterator.py:164: UserWarning: Your input ran out of data; interrupting training.\n"
    raised = 'Traceback (most recent call last):\n  File "/job/train.py", line 8, in <module>\nKeyError: 7\n'
    assert [cause.id for cause in diagnose_text(warned, {}, {}).causes] == ["input_ran_out"]
    found = diagnose_text(f"{warned}{raised}", {}, {})
    assert (found.causes, [cause.id for cause in found.also]) == ([], ["input_ran_out"])


def test_only_missing_gpus_are_called_so() -> None:
    warned = "x.py:164: UserWarning: Your input ran out of data; interrupting training.\n"
    epochs = [f"Epoch {number}/3\n{warned}8/8 - 4s - 485ms/step - loss: 1.5115\n" for number in (1, 2, 3)]
    found = diagnose_text("".join(epochs), {}, {})
    assert (found.conclusion, len(found.also)) == ("no-failure", 1)
    assert "GPU" not in heading(found)


@cases("[1,{}]<stderr>:", "[rank{}]: ", "[pod/trainer-{}/main] ", "(Worker pid=40{}) ")
def test_own_error_of_a_process_is_the_cause_of_what_only_says_that_another_one_crashed(prefix: str) -> None:
    follows = (
        "E0000 00:00:1796048073.207981 7 a.cc:252] StartAbort UNAVAILABLE: The tasks have crashed. Check the task logs"
    )
    raised = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n    f()\nKeyError: 7'
    log = "".join(
        f"{prefix.format(rank)}{line}\n" for rank, part in enumerate((follows, raised)) for line in part.split("\n")
    )
    assert getattr(diagnosed(log).own, "text", "") == "KeyError: 7"
    assert diagnosed(log.replace(prefix.format(1), prefix.format(0))).causes[0].id == "worker_crashed"


def test_error_that_there_are_no_devices_has_the_cause_that_another_line_names() -> None:
    why = "W external/xla/a.cc:199] unable to create StreamExecutor for CUDA:1: CUDA_ERROR_INVALID_DEVICE\n"
    raised = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n    f()\nRuntimeError: {}\n'
    lost = diagnosed(
        why + raised.format("Unable to initialize backend 'cuda': no supported devices found for platform CUDA")
    )
    assert [(cause.id, cause.certainty) for cause in lost.causes] == [("cuda_invalid_device", "likely")]
    assert diagnosed(why + raised.format("wrong shape")).own


@cases(" ", "\n", "\n  ", "\n ")
def test_message_of_a_cpp_exception_is_found_wherever_it_is_written(gap: str) -> None:
    log = f"terminate called after throwing an instance of 'std::runtime_error'{gap}what():{{}}no such lock\nAborted\n"
    for end in ("  ", "\n"):
        assert getattr(diagnosed(log.format(end)).own, "text", "") == "no such lock"
