"""Each fix: the code before and after it.

``cases/edits.txt`` has a case a section: ``safe`` and ``unsafe`` fixes, and ``none`` where nothing may change.
``cases/moves.txt`` has a name that moved on each line.
``cases/own.txt`` has programs whose own classes have names of Keras. They run without TensorFlow.
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.command import captured
from kdoctor.model import Severity
from kdoctor_lint.edits import Name
from kdoctor_lint.engine import lint, lint_script
from kdoctor_lint.fixes.apply import fix_file
from kdoctor_lint.names import canonical
from kdoctor_lint.registry import RULES
from kdoctor_lint.removed import REMOVED
from kdoctor_lint.script import parse_script
from kdoctor_lint.settings import Settings

CASES = Path(__file__).parent / "cases"
HEAD = "import keras\nimport tensorflow as tf\n"
EDITS = re.findall(r"^### (\w+): (.+)\n((?:(?!###).*\n?)*)", (CASES / "edits.txt").read_text("utf-8"), re.MULTILINE)
OWN = re.findall(r"^### (.+)\n((?:(?!###).*\n?)*)", (CASES / "own.txt").read_text("utf-8"), re.MULTILINE)
MOVES = [line.split(" -> ") for line in (CASES / "moves.txt").read_text("utf-8").splitlines()]
FEWEST_PROGRAMS, FEWEST_CHANGED = 40, 5
FIXES = {name: rule for name, rule in RULES.items() if name in {"lint.removed-api", "lint.multi-gpu-model"}}


def fixed(path: Path, code: bytes, *, unsafe: bool = False) -> bytes:
    path.write_bytes(code)
    result = fix_file(str(path), FIXES, unsafe=unsafe)
    assert path.read_bytes() == code, "fix_file writes nothing"
    return code if result is None else result.after


@pytest.mark.parametrize(("kind", "title", "text"), EDITS, ids=lambda text: text if "\n" not in text else "")
def test_code_is_fixed(tmp_path: Path, kind: str, title: str, text: str) -> None:
    before, _, after = (HEAD + text).partition("---\n")
    after = HEAD + after if after else before
    before, after = before.rstrip("\n") + "\n", after.rstrip("\n") + "\n"
    path = tmp_path / "train.py"
    assert fixed(path, before.encode()).decode() == (after if kind == "safe" else before)
    assert fixed(path, before.encode(), unsafe=True).decode() == after
    assert fixed(path, after.encode(), unsafe=True).decode() == after
    if kind != "none":
        findings, _ = lint_script(parse_script("train.py", after.encode()), FIXES)
        assert findings == []


@pytest.mark.parametrize(("old", "new"), MOVES)
def test_name_that_moved_is_fixed(tmp_path: Path, old: str, new: str) -> None:
    code = f"{HEAD}value = {old}  # as before\n"
    after = fixed(tmp_path / "train.py", code.encode(), unsafe=True).decode()
    assert after == code.replace(f"{old} ", f"{new} ")
    assert lint_script(parse_script("train.py", after.encode()), FIXES)[0] == []


KERAS = """
class _Keras:
    def __init__(self, **given): vars(self).update(given)
class metrics:
    class Mean(_Keras):
        def reset_state(self): print("state of Keras")
        reset_states = reset_state
class optimizers:
    class SGD(_Keras): learning_rate = lr = 0.1
class Model(_Keras):
    def fit(self, data): print("fit of Keras")
    fit_generator = fit
import sys
sys.modules.update({"keras.metrics": metrics, "keras.optimizers": optimizers})
"""
"""What the programs use of Keras 2, which has the old names and the new ones."""
MIXINS = """
class Resets:
    def reset_states(self): print("own states")
class Mean(Resets): pass
class SGD:
    def __init__(self, lr): self.lr = lr
"""


def printed(program: Path) -> str:
    """What a program prints, with no packages but the stand-ins."""
    done = subprocess.run(
        [sys.executable, "-S", str(program)],
        capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(program.parent / "packages")},
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(("title", "code"), OWN, ids=[title for title, _ in OWN])
def test_fix_of_own_class_changes_nothing(tmp_path: Path, title: str, code: str) -> None:
    del title
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "keras.py").write_text(KERAS, encoding="utf-8")
    (packages / "mixins.py").write_text(MIXINS, encoding="utf-8")
    for name in ("tensorflow", "torch"):
        (tmp_path / f"{name}.py").write_text(MIXINS, encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    before = printed(path)
    assert before
    findings, _ = lint_script(parse_script(str(path), code.encode()), RULES)
    assert [item for item in findings if item.rule.severity is Severity.ERROR] == []
    path.write_bytes(fixed(path, code.encode(), unsafe=True))
    assert printed(path) == before


def test_every_edit_has_a_case() -> None:
    moved = {canonical(old.replace("tf.", "tensorflow.", 1)) for old, _ in MOVES}
    entries = {name for name, entry in REMOVED.items() if isinstance(entry.edit, Name) and "." in name}
    missing = {name for name in entries if not any(old == name or old.startswith(f"{name}.") for old in moved)}
    assert missing == {"Optimizer.lr"}
    text = (CASES / "edits.txt").read_text("utf-8")
    others = [name for name, entry in REMOVED.items() if entry.edit is not None and name not in entries]
    words = [re.search(r"\((\w+)=\)$|(\w+)(?: without .*)?$", name) for name in others]
    assert [
        name for name, word in zip(others, words, strict=True) if not word or (word[1] or word[2]) not in text
    ] == []


@pytest.mark.tensorflow
def test_new_names_exist() -> None:
    new = sorted({new.replace("tf.", "tensorflow.", 1) for _, new in MOVES})
    program = f"import keras, tensorflow\nfor name in {new!r}:\n    eval(name)\nprint('all')\n"
    done = captured([sys.executable, "-c", program], timeout=240)
    assert done.stdout.endswith("all\n"), done.stderr[-500:]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xef\xbb\xbfimport tensorflow as tf\r\nx = tf.log(1)  # \xc3\xa9\r\n", id="mark, CRLF"),
        pytest.param(
            b"# coding: latin-1\nimport tensorflow as tf\nx = tf.log('\xe9')", id="encoding, no last line end"
        ),
        pytest.param(b"import tensorflow as tf\n\x0c\nif 1:\n\tx = tf.log(1) \t\n\n\n", id="form feed, tabs"),
        pytest.param('import tensorflow as tf\ny = "größe", tf.log("日本"), """a\n b"""\n'.encode(), id="characters"),
        pytest.param(b"import tensorflow as tf\nx = (  tf.log)  (1, # one\n  )\n", id="spaces"),
    ],
)
def test_everything_else_is_kept(tmp_path: Path, data: bytes) -> None:
    after = fixed(tmp_path / "train.py", data)
    assert after == re.sub(rb"tf\.log", rb"tf.math.log", data)


@pytest.mark.parametrize("indent", [1, 2, None])
@pytest.mark.parametrize("text", ["größe", "size"])
def test_notebook_keeps_everything_but_the_code(tmp_path: Path, indent: int | None, text: str) -> None:
    def written(*cells: list[str] | str) -> bytes:
        listed = [{"cell_type": "code", "metadata": {"tags": ["a"]}, "source": source} for source in cells]
        document = {"cells": [{"cell_type": "markdown", "source": "tf.log"}, *listed], "nbformat": 4}
        return (json.dumps(document, indent=indent, ensure_ascii=text.isascii()) + "\n").encode()

    head, magic = ["import tensorflow as tf\n", f"a = tf.log(1)  # {text}"], ["!pip install x\n", "tf.log(2)"]
    after = fixed(tmp_path / "train.ipynb", written(head, magic, "tf.log(3)\ntf.log(4)"))
    head[1] = head[1].replace("tf.log", "tf.math.log")
    assert after == written(head, magic, "tf.math.log(3)\ntf.math.log(4)")


def test_script_with_magics_is_left_alone(tmp_path: Path) -> None:
    code = b"import tensorflow as tf\n!nvidia-smi\nx = tf.log(1)\n"
    assert fixed(tmp_path / "train.py", code) == code


def test_notebook_that_cannot_be_written_alike_is_left_alone(tmp_path: Path) -> None:
    code = b'{"cells": [{"cell_type": "code",   "source": "import tensorflow as tf; tf.log(1)"}]}'
    assert fixed(tmp_path / "train.ipynb", code) == code


@pytest.mark.parametrize("name", ["train.py", "train.ipynb"])
@pytest.mark.parametrize("data", [b"x = tf.log(\n", b"\0", b"\xff", b"{}", b"import tensorflow as tf\ntf.log(1) = 3\n"])
def test_file_that_cannot_be_parsed_is_left_alone(tmp_path: Path, name: str, data: bytes) -> None:
    assert fixed(tmp_path / name, data, unsafe=True) == data


def test_silenced_finding_is_not_fixed(tmp_path: Path) -> None:
    code = b"import tensorflow as tf\na = tf.log(1)  # noqa: KD403\nb = tf.log(2)\n"
    assert fixed(tmp_path / "train.py", code) == code.replace(b"tf.log(2)", b"tf.math.log(2)")


def test_removed_name_is_one_finding_and_every_line_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import tensorflow as tf\na = tf.log(1)  # noqa: KD403\nb = tf.log(2), tf.log(3)\nc = tf.log(4)\ntf.Session()\n"
    )
    report = lint([str(path)])
    assert [(item.spot.line, "1 more line" in item.message) for item in report.findings] == [(3, True), (5, False)]
    assert [item.finding.spot.line for item in report.ignored] == [2]
    assert fixed(path, path.read_bytes()).count(b"tf.math.log") == 3


def test_other_target_has_no_fix(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("from tensorflow import keras\nkeras.optimizers.SGD(lr=1)\n")
    assert fix_file(str(path), FIXES, Settings(targets={"tensorflow": (2, 9), "keras": (2, 9)})) is None


PIECES = [text.partition("---\n")[0] for _, _, text in EDITS] + [f"value = {old}\n" for old, _ in MOVES]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), st.booleans())
def test_fixing_twice_is_fixing_once(tmp_path: Path, pieces: list[str], unsafe: bool) -> None:  # noqa: FBT001 - given by hypothesis
    path = tmp_path / "train.py"
    once = fixed(path, (HEAD + "".join(pieces)).encode(), unsafe=unsafe)
    ast.parse(once)
    assert fixed(path, once, unsafe=unsafe) == once


PROGRAMS = re.findall(r"^### (.+)\n((?:(?!###).*\n?)*)", (CASES / "programs.txt").read_text("utf-8"), re.MULTILINE)
TF_HEAD = "import numpy as np\nimport tensorflow as tf\n\ntf.keras.utils.set_random_seed(1)\n"
RUN = """
import contextlib, io, json, sys
shown = []
for code in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(code, {"__name__": "__main__"})
        except Exception as error:
            print(type(error).__name__, error)
    shown.append(out.getvalue())
print(json.dumps(shown))
"""


def test_no_fix_changes_what_a_program_prints(tmp_path: Path) -> None:
    """Programs for TensorFlow with tf_keras, where removed names still work. Those of ``own.txt`` run without it."""
    assert len(PROGRAMS) + len(OWN) >= FEWEST_PROGRAMS
    before = [TF_HEAD + code for _, code in PROGRAMS]
    after = [fixed(tmp_path / "train.py", code.encode()).decode() for code in before]
    assert sum(one != other for one, other in zip(before, after, strict=True)) >= FEWEST_CHANGED
    done = captured(
        [sys.executable, "-c", RUN],
        input=json.dumps(programs := list(dict.fromkeys(before + after))),
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"},
        check=True,
    )
    shown = dict(zip(programs, json.loads(done.stdout.splitlines()[-1]), strict=True))
    titles = [title for title, _ in PROGRAMS]
    first, second = [shown[one] for one in before], [shown[one] for one in after]
    assert [title for title, text in zip(titles, first, strict=True) if not text or "Error" in text] == []
    assert dict(zip(titles, second, strict=True)) == dict(zip(titles, first, strict=True))
