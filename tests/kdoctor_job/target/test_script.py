"""Scripts that run up to their ``fit``, as Python would start them."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases

pytestmark = pytest.mark.tensorflow

NET = """
import sys, keras, numpy as np, tensorflow as tf
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
"""
IN_A_THREAD = """
import threading
thread = threading.Thread(target=lambda: model.fit(x, y, epochs=4))
thread.start()
thread.join()
sys.exit()
"""
OWN_FIT = """
class Own(keras.Sequential):
    def fit(self, x, y=None, **more):
        return super().fit(tf.data.Dataset.from_tensors((x, y)), **more)
model = Own([keras.Input((2,)), keras.layers.Dense(1)])
"""
GUARD = "import kdoctor\nkdoctor.guard(model, (x, y), None, batch_size=2, class_weight={0: 1.0})\n"
CAUGHT = "\ntry:\n    model.fit(x, y, epochs=3)\nexcept Exception:\n    pass\n"


@pytest.fixture
def until_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Writes a script, runs it, and restores the interpreter."""
    from kdoctor_job.target.script import until_fit

    before = dict(sys.modules)
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs9").mkdir()
    (tmp_path / "jobs9/net.py").write_text("SIZE = 2\n")

    def run(text: str, command: str = "train9.py", file: str = "train9.py", number: int = 1) -> Any:
        (tmp_path / file).write_text(text)
        return until_fit(command, number)

    yield run
    sys.modules["__main__"] = before["__main__"]
    for name in [name for name in sys.modules if name.startswith("jobs9") or name == "horovod"]:
        del sys.modules[name]


@cases(
    ("model.fit(x, y, batch_size=2)", {"batch_size": 2}),
    ("model.fit(tf.data.Dataset.from_tensors((x, y)), None, None, 7)", {"batch_size": None, "epochs": 7}),
    (CAUGHT, {"epochs": 3}),
    (IN_A_THREAD, {"epochs": 4}),
    (GUARD, {"class_weight": {0: 1.0}, "batch_size": 2}),
    (OWN_FIT + "model.fit(x, y, epochs=2, workers=4, class_weight={0: 1.0})", {"epochs": 2, "class_weight": {0: 1.0}}),
)
def test_arguments_of_the_first_fit(until_fit: Callable[..., Any], lines: str, expected: dict[str, Any]) -> None:
    model, data, arguments, fit = until_fit(NET + lines + "\nmodel.fit(None)\n")
    assert arguments == expected
    assert fit["number"] == 1
    assert (
        data.element_spec[0].shape == (4, 2) if "Dataset.from_tensors((x, y)), N" in lines else data[0].shape == (4, 2)
    )
    assert model.fit.__self__ is model


def test_script_is_the_main_module_with_its_arguments(until_fit: Callable[..., Any], tmp_path: Path) -> None:
    main = "if __name__ == '__main__':\n    model.fit(x, steps_per_epoch=int(sys.argv[1]))\n"
    assert until_fit(NET + main, "train9.py 5")[2] == {"steps_per_epoch": 5}
    (tmp_path / "beside9.py").write_text("STEPS = 6\n")
    beside = NET + "from beside9 import STEPS\nmodel.fit(x, steps_per_epoch=STEPS)"
    assert until_fit(beside, f"'{tmp_path}/train9.py'")[2] == {"steps_per_epoch": 6}
    relative = NET + "from .net import SIZE\nmodel.fit(x, batch_size=SIZE)"
    assert until_fit(relative, "jobs9.train", "jobs9/train.py")[2] == {"batch_size": 2}


PHASES = """
log = model.fit(x, y, batch_size=2, epochs=5, validation_data=(x, y), callbacks=[keras.callbacks.CSVLogger("log9.csv")])
model.compile("adam", "mse")
assert set(log.history) == {"loss", "val_loss"} and len(log.epoch) == 1
model.fit(x, y, epochs=8)
model.fit(x, y, epochs=9)
"""


def test_fit_of_a_later_phase(until_fit: Callable[..., Any], tmp_path: Path) -> None:
    """Those before it train one step, and their callbacks, which may write files, do not run."""
    from kdoctor_target.runner.case import NotHere

    phases, start = NET + PHASES, len(NET.splitlines())
    fits = [until_fit(phases, number=number) for number in (1, 2, 3)]
    assert [arguments["epochs"] for _, _, arguments, _ in fits] == [5, 8, 9]
    lines = [f"train9.py:{start + line}" for line in (2, 5, 6)]
    assert [fit["place"] for *_, fit in fits] == lines
    assert [fit["others"] for *_, fit in fits] == [lines[1:], lines[2:], []]
    assert [type(model.optimizer).__name__ for model, *_ in fits] == ["SGD", "Adam", "Adam"]
    assert not (tmp_path / "log9.csv").exists()
    with pytest.raises(NotHere, match=r"train9\.py ended before its call 4 of fit, after 3"):
        until_fit(phases, number=4)


CELLS = (
    "!pip install \\\n  keras\n%matplotlib inline\nfiles = !ls\nmodel?\nif files:\n    !ls\nget_ipython().system('x')\n"
    + NET,
    "%%writefile ./largest9.py\nimport tensorflow as t\n@t.function\ndef largest(x):\n    return x if x > 0 else -x\n",
    "%%writefile -a largest9.py\nless9 = largest",
    "%%capture out\nfrom largest9 import less9 as largest\nfrom largest9 import largest\ndisplay(x, x)",
    "%%bash\ntouch saved9\n",
    "%%time\n%time history = model.fit(x, y, epochs=int(largest(-3.0)))\n",
    "model.predict(x)\nmodel.fit(x, y, epochs=9)",
    "open('saved9', 'w')",
)


def test_notebook_runs_up_to_its_fit(until_fit: Callable[..., Any], tmp_path: Path) -> None:
    cells: list[Any] = [{"cell_type": "markdown", "source": "model.fit()"}]
    cells += [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in CELLS]
    notebook = json.dumps({"nbformat": 4, "cells": cells})
    (tmp_path / "a folder").mkdir()
    *_, arguments, fit = until_fit(notebook, "'a folder/train9.ipynb'", "a folder/train9.ipynb")
    assert (arguments["epochs"], fit["others"]) == (3, ["train9.ipynb:cell 7:2"])
    assert Path.cwd() == tmp_path / "a folder"
    assert [file.name for file in Path().iterdir()] == ["train9.ipynb"]


@cases(
    ('{"cells": [{"cell_type": "code", "source": "x = 1\\n1 / 0"}]}', "division by zero (train9.ipynb:cell 1:2)"),
    ('{"worksheets": []}', "train9.ipynb is not a notebook of format 4"),
    ("{", "train9.ipynb is not a notebook of format 4"),
)
def test_notebook_that_cannot_run(until_fit: Callable[..., Any], text: str, expected: str) -> None:
    from kdoctor_job.target.parts import PartError

    with pytest.raises(PartError) as problem:
        until_fit(text, "train9.ipynb", "train9.ipynb")
    assert problem.value.record["message"].endswith(expected)


def test_guard_before_another_fit_is_passed(until_fit: Callable[..., Any]) -> None:
    *_, fit = until_fit(NET + GUARD + "model.fit(x, y, epochs=5)\nmodel.fit(x, y, epochs=8)\n", number=2)
    assert fit["number"] == 2


@cases(
    ("while True:\n    model.train_on_batch(x, y)", "train9.py trains in a loop (train_on_batch)"),
    ("tf.distribute.MirroredStrategy(['CPU:0']).run(lambda: 1)", "train9.py trains in a loop (strategy.run)"),
    ("sys.modules['horovod'] = tf\nmodel.fit(x, y)", "train9.py trains with Horovod"),
    ("model.predict(x, verbose=0)", "train9.py ended without a call of fit"),
    ("sys.exit()", "train9.py ended without a call of fit"),
)
def test_script_without_fit_is_not_examined(until_fit: Callable[..., Any], lines: str, expected: str) -> None:
    from kdoctor_target.runner.case import NotHere

    with pytest.raises(NotHere) as reason:
        until_fit(NET + lines)
    assert str(reason.value).startswith(expected)


@cases(
    ("sys.exit(2)", "train9.py ends before any fit: exit status 2"),
    (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', required=True)\np.parse_args()",
        "train9.py ends before any fit: the following arguments are required: --lr",
    ),
    ("print('no', 'data', file=sys.stderr)\nsys.exit(1)", "train9.py ends before any fit: no data"),
    ("sys.exit('no data')", "train9.py ends before any fit: no data"),
    ("sys.stdin = open('/dev/null'); input()", "train9.py raised EOFError: EOF when reading a line (train9.py:7)"),
    ("1 / 0", "train9.py raised ZeroDivisionError: division by zero (train9.py:7)"),
    (
        "keras.Sequential([keras.layers.Dense(1)]).fit(x, y)",
        "fit is called, and the model is not compiled (train9.py:7)",
    ),
    ("model.fit()", None),
)
def test_script_that_fails_is_reported_with_its_line(
    until_fit: Callable[..., Any], lines: str, expected: str | None
) -> None:
    from kdoctor_job.target.parts import PartError

    if expected is None:
        assert until_fit(NET + lines)[1] is None
        return
    with pytest.raises(PartError) as error:
        until_fit(NET + "\n" + lines)
    assert str(error.value) == expected
    assert error.value.part == "script"


@cases(
    ("import os\nos.environ['DATA9']", "The job needs DATA9 in its environment: export DATA9=..."),
    ("import sys\nn = int(sys.argv[1])", "Give it the arguments that it needs, as in --model 'train9.py --batch 64'."),
    ("{}['DATA9']", ""), ("[][1]", ""),
)  # fmt: skip
def test_what_a_script_needs_to_start(until_fit: Callable[..., Any], text: str, fix: str) -> None:
    from kdoctor_job.target.parts import PartError

    with pytest.raises(PartError) as error:
        until_fit(text)
    assert error.value.record["fix"] == fix


def test_module_that_is_not_there_is_named(until_fit: Callable[..., Any]) -> None:
    from kdoctor_job.target.parts import PartError

    with pytest.raises(PartError, match=r"No module named 'jobs9\.none'"):
        until_fit("", "jobs9.none")


@pytest.mark.filterwarnings("ignore::ImportWarning")
def test_package_is_run_as_python_runs_it(until_fit: Callable[..., Any]) -> None:
    from kdoctor_job.target.parts import PartError

    sys.path[:] = [folder for folder in sys.path if folder]  # python -m pytest adds the working directory
    for text in ("import jobs9.net", "from . import net", "from .net import SIZE"):
        with pytest.raises(PartError) as error:
            until_fit(text, "jobs9/train.py --lr 1", "jobs9/train.py")
        assert error.value.record["fix"].endswith("use --model 'jobs9.train --lr 1'")
    Path("src9/pkg9").mkdir(parents=True)
    with pytest.raises(PartError) as error:
        until_fit("import pkg9.net", "src9/pkg9/train.py", "src9/pkg9/train.py")
    assert error.value.record["fix"].endswith(": export PYTHONPATH=src9")
    assert until_fit(NET + "model.fit(x, y, epochs=4)", "jobs9", "jobs9/__main__.py")[2] == {"epochs": 4}
