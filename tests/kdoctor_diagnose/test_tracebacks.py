"""The exception with which a traceback ends, in the forms in which tracebacks are printed."""

from helpers.cases import cases
from kdoctor_diagnose.tracebacks import exception_after, message_alone, passed_on

TITLE = "Traceback (most recent call last):"
FRAMES = (b'  File "a.py", line 3, in <module>', b"    f()", b"    ^^^")


@cases(
    (TITLE, [*FRAMES, b"mine.Late: x", b"other.Late: y"], 3),
    (TITLE, [*FRAMES, b"  [Previous line repeated 3 more times]", b"mine.Late"], 4),
    (TITLE, [*FRAMES, b"", b"mine.Late:"], 4),
    (f"[rank1]: {TITLE}", [b"[rank1]:   File x", b"other.Late: y", b"[rank1]: mine.Late: x"], 2),
    (
        f"\u256d\u2500 {TITLE} \u2500\u256e",
        ["\u2502 f() \u2502".encode(), "\u2570\u2500\u256f".encode(), b"mine.Late: x"],
        2,
    ),
    (TITLE, ["File \u201ca.py\u201d, line 3, in f".encode(), b"f()", b'File "b.py", line 2, in g', b"mine.Late: x"], 3),
    (
        f"I0517 16:48:59.615169 140 run.py:255] {TITLE}",
        [
            b"I0517 16:48:59.615311 140 run.py:255] " + line
            for line in (b'File "a.py", line 3, in f', b"f()", b"A.B: x")
        ],
        2,
    ),
    (f"  + {TITLE}", [b"  |   File x", b"  | f()", b"mine.Late: x"], 2),
    (f"mine.Late    {TITLE[:-1]}", [b"Cell In[3], line 1", b"----> 1 f()", b"other.Late: y", b"mine.Late: x"], 3),
    (f"mine.LateError{TITLE[:-1]}", [b"<ipython-input-1-2> in f()", b"----> 1 f()", b"mine.LateError: x"], 2),
    (TITLE, [*FRAMES], None),
    (TITLE, [*FRAMES, b"Epoch 1/2", b"mine.Late: x"], None),
    (TITLE, [b"  " + b"x" * 120, b"wrapped", b"mine.Late: x"], 2),
    (TITLE, [b"  " + b"x" * 120, b"  " + b"x" * 80, b"Epoch 1/2", b"mine.Late: x"], None),
    (TITLE, [b"  File x"] * 500 + [b"mine.Late: x"], None),
)
def test_exception_is_the_first_line_that_is_not_a_frame(title: str, lines: list[bytes], place: int | None) -> None:
    found = exception_after(title, lines, 0)
    assert (found.place if found.text else None) == place


@cases(
    (b'  File "/home/ada/train.py", line 12, in f', "train.py:12"),
    (b"Cell In[6], line 11", "Cell In[6]:11"),
    (b"File ~/work/train.py:245, in main()", "train.py:245"),
    (b'  File "/opt/job/lib/python3.11/site-packages/keras/src/layers/layer.py", line 2, in g', None),
    (b'  File "<string>", line 1, in <module>', None),
    (b'  File "/opt/equinox/equinox/_jit.py", line 263, in _call', None),
    (b'  File "/a/__main__.py", line 3, in <module>', "__main__.py:3"),
    (b'  File "h5py/h5o.pyx", line 190, in h5py.h5o.open', None),
)
def test_last_place_of_the_program_is_kept(frame: bytes, own: str | None) -> None:
    library = b'  File "/usr/lib/python3.11/json/decoder.py", line 3, in g'
    title = TITLE if frame.startswith(b" ") else f"mine.Late    {TITLE[:-1]}"
    found = exception_after(title, [frame, library, b"mine.Late: x"], 0)
    assert found.own == own


def test_place_is_that_of_the_function_that_tensorflow_called() -> None:
    lines = [
        b'  File "/a/train.py", line 26, in <module>',
        b"a.InvalidArgumentError: Graph execution error:",
        b"Error in user-defined function passed to MapDataset:1 transformation with iterator: Root::Map: KeyError: 'x'",
        TITLE.encode(),
        b'  File "/a/data.py", line 20, in parse',
        b"KeyError: 'x'",
        b'  File "/a/other.py", line 1, in later',
    ]
    found = exception_after(TITLE, lines, 0)
    assert (found.text, found.own) == ("KeyError: 'x'", "data.py:20")


def test_traceback_that_was_joined_to_one_line_is_read() -> None:
    frames = 'File "/a/train.py", line 29, in f g() File "/usr/lib/python3.11/b.py", line 3, in g raise'
    line = f"The replica 0 ended. {TITLE} {frames} a.TooLateError: late"
    found = exception_after(line, [], 0)
    assert (found.text, found.own) == ("a.TooLateError: late", "train.py:29")
    assert exception_after(f"{TITLE} {frames}", [], 0).own == "train.py:29"


REPORTED = "INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.python.errors_impl.UnknownError'>"


@cases(
    ("`InvalidArgumentError: Incompatible shapes: [64,2]", "InvalidArgumentError: Incompatible shapes: [64,2]"),
    ("InvalidArgumentError (see above for traceback): wrong", "InvalidArgumentError: wrong"),
    (f"{REPORTED}, /a; lost", "UnknownError: /a; lost"),
    ("2020-03-07 11:30:44.0: E tensorflow/rocm_dnn.cc:325] no handle: bad", "no handle: bad"),
    ("jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: none", "XlaRuntimeError: UNAVAILABLE: none"),
    ("jax._src.traceback_util.UnfilteredStackTrace: TypeError: no", "TypeError: no"),
    ("W tensorflow/op_kernel.cc:1] OP_REQUIRES failed at save.cc:9 : Permission denied: /a", "Permission denied: /a"),
    ("(file): /a/graph.mm:233:0: error: 'multiply' op shapes differ", "'multiply' op shapes differ"),
    ("but we get `PermissionError: no: '/a'` with it", "PermissionError: no: '/a'"),
    ("    raise StopIteration()", "StopIteration()"),
    (f"a.LateError    {TITLE}", "a.LateError: the log ends before its message"),
)
def test_message_of_one_line_is_what_it_says(line: str, said: str) -> None:
    assert message_alone(line) == said


@cases(
    ([b"InternalError: Graph execution error:", b"", b"Detected at node A", b"wrong"], "InternalError: wrong"),
    ([b"TypeError: in converted code:", b"    <ipython-input-1-2>:7 f  *", b"    TypeError: no"], "TypeError: no"),
    ([b"a.InternalError: From /job:worker/task:0:", b"Halted:", b"\t [[{{node A}}]]"], "a.InternalError: Halted:"),
    ([b"ImportError: Failed, because of this error:", b"no module"], "ImportError: no module"),
    ([b"ImportError: Failed:"], "ImportError: Failed:"),
    (
        [b"KeyError: in user code:", rb"    KeyError: 'Exception encountered when calling F().\n\n\x1b[1m9\x1b[0m'"],
        "KeyError: 9",
    ),
    ([b"UnfilteredStackTrace: ValueError: sizes:", b"4 and 8"], "ValueError: sizes: 4 and 8"),
    ([b"ImportError: no module", b"wrong"], None),
    ([b"Columns: a, b:", b"wrong"], None),
)
def test_message_that_ends_with_a_colon_announces_another_one(lines: list[bytes], said: str | None) -> None:
    found = passed_on(lines, 0)
    assert (found and found.text) == said


@cases(
    ([b"OSError: Unable (time = now", b", errno = 21)", b"words"], "OSError: Unable (time = now , errno = 21)"),
    ([b"mine.Late: f(a", b"b"], "mine.Late: f(a b"),
    ([b"e.ArgumentError: Expected 'x' to be true. Summarized data: b''", b"b'far'"], "e.ArgumentError: b'far'"),
    ([b"a.ConvertError: No.<unknown>:0: error: loc(call(a at b)): 'tf.X' op"], "a.ConvertError: No.'tf.X' op"),
    ([b"mine.Late: f(a", *[b"words"] * 9], "mine.Late: f(a"),
)
def test_message_goes_on_where_it_is_not_complete(lines: list[bytes], said: str) -> None:
    assert exception_after(TITLE, [*FRAMES, *lines], 0).text == said


def test_object_that_keras_could_not_load_has_the_error_behind_it() -> None:
    head = (
        b"TypeError: <class 'keras.src.models.functional.Functional'> could not be deserialized properly. Please ensure"
    )
    lines = [head, b"", b"config={'name': 'm'}.", b"", b"Exception encountered: Unable to read 'x'"]
    found = exception_after(TITLE, [*FRAMES, *lines], 0)
    assert found.text == "TypeError: Unable to read 'x'"


def test_error_in_a_function_that_autograph_changed_is_the_one_of_the_program() -> None:
    head = b'a.MultilineMessageKeyError: Exception encountered when calling layer "x".'
    frames = [b'  File "/tmp/__autograph_generated_file1.py", line 12, in tf__call', b"    f()"]
    said = [b"", b"in user code:", b"", b'    File "/a/train.py", line 16, in call  *', b"        return row[1]", b""]
    found = exception_after(TITLE, [*frames, head, *said, b"    KeyError: 'images'"], 0)
    assert (found.text, found.own) == ("KeyError: 'images'", "train.py:16")
