"""Callables of ``--model`` and ``--data``, and clear messages if they cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor_job.target import parts
from kdoctor_job.target.parts import PartError, call, describe, find

MODULE = """
def build(): return "model"
def wants(path, *, size): return path
def optional(path=None, *more, **named): return "model"
def raises(): raise RuntimeError("no such bucket\\n  details")
class Maker:
    @staticmethod
    def build(): return "model"
number = 7
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package ``jobs9``: a valid module, one that raises an error, and one that imports a missing module."""
    package = tmp_path / "jobs9"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "good.py").write_text(MODULE)
    (package / "sick.py").write_text("1 / 0\n")
    (package / "lacks.py").write_text("import no_such_thing9\n")
    (package / "trains.py").write_text("class Job:\n    fit = lambda self: 1 / 0\nJob().fit()\n")
    (package / "exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("jobs9")]:
        del sys.modules[name]


def test_function_and_method_are_found() -> None:
    assert find("model", "jobs9.good:build")() == "model"
    assert find("model", "jobs9.good:Maker.build")() == "model"
    assert call("model", find("model", "jobs9.good:optional")) == "model"
    assert call("model", lambda folder: Path(folder).is_dir())
    assert call("model", lambda folder: folder, folder="here") == "here"


@cases(
    ("jobs9.none:build", "jobs9.none"),
    ("nothing9:build", "nothing9"),
    ("jobs9.good:bild", "jobs9.good has no bild"),
    ("jobs9.good:number", "int"),
    ("jobs9.sick:build", "ZeroDivisionError: division by zero ("),
    ("jobs9.lacks:build", "ModuleNotFoundError: No module named 'no_such_thing9'"),
    ("jobs9.exits:build", "SystemExit: 3"),
    ("jobs9.trains:fit", "ZeroDivisionError: division by zero ("),
)
def test_missing_callable_is_reported(place: str, expected: str) -> None:
    with pytest.raises(PartError) as error:
        find("data", place)
    assert expected in str(error.value)
    named = "Name a function of jobs9.good: Maker, build, optional, raises, wants."
    fix = {"jobs9.good:bild": named, "jobs9.trains:fit": parts._OUTSIDE.format("jobs9.trains")}.get(place, "")
    fix = parts._ELSEWHERE if "no module named" in str(error.value) else fix
    raised = expected.partition(": ")[0].endswith(("Error", "Exit"))
    expected_record = {"part": "data", "message": str(error.value), "raised": raised, "fix": fix}
    assert error.value.record == expected_record
    assert "\n" not in str(error.value)


def test_required_arguments_are_named() -> None:
    with pytest.raises(PartError, match=r"wants .*\(path, size\)"):
        call("model", find("model", "jobs9.good:wants"))


def test_exception_is_reported_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PartError, match=r"raises raised RuntimeError: no such bucket \(.*good\.py:5\)"):
        call("model", find("model", "jobs9.good:raises"))
    assert "Traceback" in capsys.readouterr().err


JOB = """
import json
import numpy as np
def inside_numpy():
    return np.concatenate([np.zeros((2, 3)), np.zeros((2, 4, 5))])
def inside_the_library():
    return json.loads("[1, ")
"""


@pytest.mark.parametrize(("name", "line"), [("inside_numpy", 5), ("inside_the_library", 7)])
def test_error_names_the_line_of_the_job(tmp_path: Path, name: str, line: int) -> None:
    (tmp_path / "jobs9" / "deep.py").write_text(JOB)
    with pytest.raises(PartError) as error:
        call("data", find("data", f"jobs9.deep:{name}"))
    assert str(error.value).endswith(f"({tmp_path / 'jobs9' / 'deep.py'}:{line})")


def test_path_below_the_working_directory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs9" / "deep.py").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PartError, match=r"\(jobs9/deep\.py:5\)$"):
        call("data", find("data", "jobs9.deep:inside_numpy"))


KERAS_MESSAGE = """Exception encountered when calling Net.call().

\x1b[1mMatrix size-incompatible: In[0]: [32,1], In[1]: [4,4]\x1b[0m

Arguments received by Net.call():
  • t=tf.Tensor(shape=(32, 8), dtype=float32)"""
CONVERTED_MESSAGE = """in user code:

    File "/opt/job/train.py", line 14, in train_step  *
        return {"loss": np.zeros((2, 3)) @ np.zeros((4, 5))}
    File "/opt/venv/lib/python3.11/site-packages/numpy/core.py", line 20, in matmul
        raise ValueError(text)

    ValueError: matmul: size 4 is different from 3
"""
CONVERTED_KERAS_MESSAGE = """in user code:

    File "/opt/job/train.py", line 9, in call  *
        raise ValueError("not alone")

    ValueError: Exception encountered when calling Net.call().

    \x1b[1mnot alone\x1b[0m

    Arguments received by Net.call():
      • training=True
"""
TWICE_CONVERTED_MESSAGE = """in user code:

    File "/opt/job/train.py", line 9, in call  *
        return self.part(rows)

    ValueError: Exception encountered when calling layer 'part' (type Part).
   \x20
    in user code:
   \x20
        File "/opt/job/train.py", line 5, in call  *
            raise ValueError("inside")
   \x20
        ValueError: inside
   \x20
   \x20
    Call arguments received by layer 'part' (type Part):
      • rows=tf.Tensor(shape=(None, 1), dtype=float32)
"""
"""Of Keras 2, which indents empty lines, too."""
QUOTED_MESSAGE = """ValueError: cannot reshape array of size 3 into shape (7,)
Traceback (most recent call last):

  File "/opt/venv/lib/python3.11/site-packages/tensorflow/python/ops/script_ops.py", line 270, in __call__
    ret = func(*args)

  File "/opt/job/data.py", line 10, in examples
    if number == 1: np.zeros(3).reshape(7)

\t [[{{node PyFunc}}]] [Op:IteratorGetNext] name: """
NESTED_MESSAGE = """Error when deserializing class 'Dense' using config={'units': 1}.

Exception encountered: Cannot deserialize object of type `Reg`."""


@cases(
    (KERAS_MESSAGE, "ValueError: Matrix size-incompatible: In[0]: [32,1], In[1]: [4,4]"),
    (CONVERTED_MESSAGE, "ValueError: matmul: size 4 is different from 3 (/opt/job/train.py:14)"),
    (CONVERTED_KERAS_MESSAGE, "ValueError: not alone (/opt/job/train.py:9)"),
    (TWICE_CONVERTED_MESSAGE, "ValueError: inside (/opt/job/train.py:5)"),
    (QUOTED_MESSAGE, "ValueError: cannot reshape array of size 3 into shape (7,) (/opt/job/data.py:10)"),
    (NESTED_MESSAGE, "ValueError: Cannot deserialize object of type `Reg`."),
    ("", "ValueError"),
    ("x" * 400, f"ValueError: {'x' * 297}..."),
)
def test_messages_of_the_frameworks_become_one_line(message: str, expected: str) -> None:
    assert describe(ValueError(message)) == expected


def test_error_of_a_call_is_named_where_keras_cannot_build_the_model() -> None:
    error = RuntimeError("Unable to automatically build the model. Exception encountered:\n'0'")
    error.__context__ = KeyError(0)
    assert describe(error) == "KeyError: 0"


def test_error_of_a_file_begins_with_the_file() -> None:
    missing = FileNotFoundError(2, "No such file or directory", "/data/w.h5")
    assert describe(missing) == "FileNotFoundError: /data/w.h5: No such file or directory"
    of_hdf5 = OSError(122, "Can't synchronously write data (file write failed: time = now\n, filename = 'w.h5')")
    assert describe(of_hdf5).startswith("OSError: Disk quota exceeded: Can't synchronously write data")
    assert describe(OSError("no answer")) == "OSError: no answer"


def test_cell_of_a_notebook_is_named_as_such() -> None:
    namespace: dict[str, object] = {}
    code = compile("def fails():\n    raise ValueError('no')", "/tmp/ipykernel_301/4160.py", "exec")  # noqa: S108
    exec(code, namespace)  # noqa: S102 - as a notebook does
    with pytest.raises(PartError, match=r"ValueError: no \(line 2 of a notebook cell\)$"):
        call("data", namespace["fails"])  # type: ignore[arg-type]
