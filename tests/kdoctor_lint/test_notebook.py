import json
from pathlib import Path

import pytest

from kdoctor_lint.engine import lint
from kdoctor_lint.notebook import without_magics

FIRST = "import keras\nimport tensorflow as tf\n\nstrategy = tf.distribute.MirroredStrategy()"
SECOND = "%%time\nwith strategy.scope():\n    model = keras.Sequential([keras.layers.Dense(1)])"
THIRD = "!nvidia-smi\nmodel.compile(optimizer='adam', loss='mse')"


def notebook(path: Path, *cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    text = [{"cell_type": "markdown", "source": "# model = ("}]
    path.write_text(json.dumps({"cells": [*text, *code], "nbformat": 4}), encoding="utf-8")
    return str(path)


def test_names_are_followed_across_cells(tmp_path: Path) -> None:
    (finding,) = lint([notebook(tmp_path / "a.ipynb", FIRST, SECOND, THIRD)]).findings
    assert finding.rule.id == "lint.compile-outside-scope"
    assert (finding.spot.cell, finding.spot.line, finding.spot.column) == (3, 2, 1)
    assert str(finding.spot) == f"{tmp_path / 'a.ipynb'}:cell 3:2:1"
    assert finding.source == "model.compile(optimizer='adam', loss='mse')"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("%pip install -U 'keras<3'", 0),
        ("!pip install -q tensorflow==2.9.1", 0),
        ("!pip install tensorflow==2.16.1", 1),
        ("%%writefile Dockerfile\nRUN pip install https://host.example/tensorflow-2.13.0-cp310-linux_x86_64.whl", 0),
    ],
)
def test_installed_keras_2_has_no_defects_of_keras_3(tmp_path: Path, command: str, found: int) -> None:
    assert len(lint([notebook(tmp_path / "a.ipynb", command, FIRST, SECOND, THIRD)]).findings) == found


WORKERS = """import json, os
import keras
import tensorflow as tf
%s
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(data)
model.save("model.keras")"""
CONFIG = "os.environ['TF_CONFIG'] = json.dumps(config)"
IN_FUNCTION = "def train():\n    " + WORKERS.partition("%s\n")[2].replace("\n", "\n    ")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (WORKERS % "", 0),
        (WORKERS % CONFIG, 2),
        (WORKERS % f"{CONFIG}\nos.environ.pop('TF_CONFIG', None)", 0),
        ("%%writefile train.py\n" + WORKERS % "", 2),
        ((WORKERS % "").replace("Strategy()", "Strategy(cluster_resolver=resolver)"), 2),
        (f"import keras\nimport tensorflow as tf\n{IN_FUNCTION}\nspark.run(train)", 2),  # which is for its workers
    ],
)
def test_notebook_without_tf_config_has_no_other_workers(tmp_path: Path, code: str, found: int) -> None:
    assert len(lint([notebook(tmp_path / "a.ipynb", code)]).findings) == found
    (tmp_path / "a.py").write_text(f"# Databricks notebook source\n{code}", encoding="utf-8")
    assert "%%" in code or len(lint([str(tmp_path / "a.py")]).findings) == found
    (tmp_path / "a.py").write_text(code, encoding="utf-8")
    assert "%%" in code or len(lint([str(tmp_path / "a.py")]).findings) == 2


def test_other_cells_are_linted_after_broken_one(tmp_path: Path) -> None:
    found = lint([notebook(tmp_path / "a.ipynb", FIRST, SECOND, "x = = 1", THIRD)]).findings
    assert [(item.rule.id, item.spot.cell, item.spot.line) for item in found] == [
        ("lint.syntax-error", 3, 1),
        ("lint.compile-outside-scope", 4, 2),
    ]


def test_comment_silences_in_its_cell(tmp_path: Path) -> None:
    third = f"{THIRD}  # kdoctor: ignore[lint.compile-outside-scope] Keras 2 runs this notebook"
    report = lint([notebook(tmp_path / "a.ipynb", FIRST, SECOND, third)])
    assert report.findings == ()
    assert report.ignored[0].reason == "Keras 2 runs this notebook"


def test_notebook_of_spark_is_read(tmp_path: Path) -> None:
    path = Path(notebook(tmp_path / "a.ipynb", FIRST, SECOND, THIRD))
    text = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**text, "metadata": {"language_info": {"name": "pyspark"}}}), encoding="utf-8")
    assert len(lint([str(path)]).findings) == 1


def test_format_3_with_worksheets_is_read(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": [f"{FIRST}\n"]}, {"cell_type": "code", "input": ["x = = 1"]}]
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}), encoding="utf-8")
    (finding,) = lint([str(path)]).findings
    assert finding.spot.cell == 2


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if x:\n    !pip install keras", "if x:\n    pass"),
        ("!echo a \\\n  b\nx = 1", "pass\n\nx = 1"),
        ("files = !ls\nx = %timeit -o f()", "files = None\nx = None"),
        ("%%bash\nls\nrm x", "\n\n"),
        ("%%time\nx = 1", "\nx = 1"),
        ("keras.Model?\n?keras.Model\nkeras.Model??", "pass\npass\npass"),
        ("  x = 1\n  y = 2", "x = 1\ny = 2"),
        ("ls ./data\ncd ..\nx = 1", "pass\npass\nx = 1"),
        ("ls = 3\nprint(ls)", "ls = 3\nprint(ls)"),
        ("!ls\nx = (a\n% b)\ny = (c\n!= d)", "pass\nx = (a\n% b)\ny = (c\n!= d)"),
        ("!echo \"it's\nx = 1", "pass\nx = 1"),
        ("x = = 1", "x = = 1"),
    ],
)
def test_magics_are_replaced_line_by_line(cell: str, code: str) -> None:
    assert without_magics(cell) == code


def test_string_that_looks_like_magic_stays(tmp_path: Path) -> None:
    cell = f'{FIRST}\ntext = """\n%time\n!ls\n"""\nawait asyncio.sleep(1)\nx = = 1'
    (finding,) = lint([notebook(tmp_path / "a.ipynb", cell)]).findings
    assert finding.spot.line == 10


@pytest.mark.parametrize("magic", ["%%writefile train.py", "%%file 'src/train.py'", "\n%%writefile -a train.py"])
def test_written_script_is_linted_at_its_place(tmp_path: Path, magic: str) -> None:
    code = f"{FIRST}\nwith strategy.scope():\n    model = keras.Sequential([keras.layers.Dense(1)])\n"
    cell = f"{magic}\n{code}model.compile(optimizer='adam', loss='mse')"
    (finding,) = lint([notebook(tmp_path / "a.ipynb", "x = 1", cell)]).findings
    assert (finding.rule.id, finding.spot.cell, finding.spot.line) == (
        "lint.compile-outside-scope",
        2,
        cell.count("\n") + 1,
    )


def test_written_script_has_its_own_names(tmp_path: Path) -> None:
    script = "%%writefile train.py\nimport build\nmodel = build.model()\nmodel.compile(optimizer='adam', loss='mse')"
    assert lint([notebook(tmp_path / "a.ipynb", FIRST, SECOND, script)]).findings == ()


@pytest.mark.parametrize("imported", ["from jobs import build", "from . import build", "from jobs.build import *"])
def test_written_script_imports_another(tmp_path: Path, imported: str) -> None:
    build = (
        "%%writefile jobs/build.py\nimport keras\ndef model():\n    return keras.Sequential([keras.layers.Dense(1)])"
    )
    model = "model()" if "*" in imported else "build.model()"
    train = f"%%writefile jobs/train.py\n{FIRST}\n{imported}\nwith strategy.scope():\n    net = {model}\n"
    (finding,) = lint([notebook(tmp_path / "a.ipynb", build, train + "net.compile('adam', 'mse')")]).findings
    assert (finding.rule.code, finding.spot.cell) == ("KD102", 2)


def test_written_script_may_be_in_several_cells(tmp_path: Path) -> None:
    cells = [f"%%writefile train.py\n{FIRST}", f"%%writefile -a train.py\n{SECOND.partition(chr(10))[2]}"]
    last = "%%writefile -a train.py\nmodel.compile(optimizer='adam', loss='mse')"
    (finding,) = lint([notebook(tmp_path / "a.ipynb", *cells, last)]).findings
    assert (finding.spot.cell, finding.spot.line) == (3, 2)


def test_syntax_error_of_written_script_is_reported(tmp_path: Path) -> None:
    (finding,) = lint([notebook(tmp_path / "a.ipynb", "%%writefile train.py\n\nx = = 1")]).findings
    assert (finding.rule.id, finding.spot.cell, finding.spot.line) == ("lint.syntax-error", 1, 3)


def test_other_written_files_are_not_code(tmp_path: Path) -> None:
    assert lint([notebook(tmp_path / "a.ipynb", "%%writefile job.sh\npython -m train --lr 0.1")]).findings == ()
