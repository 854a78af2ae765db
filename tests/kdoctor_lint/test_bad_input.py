"""What cannot be read or parsed: one clear message each, and the rest goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from kdoctor.errors import UsageError
from kdoctor_lint.engine import lint
from kdoctor_lint.model import LintFinding
from kdoctor_lint.rules import RULES

BAD = RULES["lint.multi-gpu-model"].bad


def only(path: Path) -> LintFinding:
    report = lint([str(path)])
    assert len(report.findings) == 1
    return report.findings[0]


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_a_syntax_error_says_where_and_what(tmp_path: Path) -> None:
    finding = only(written(tmp_path / "train.py", b"import keras\nmodel = keras.Sequential(]\n"))
    assert finding.rule.id == "lint.syntax-error"
    assert (finding.spot.line, finding.spot.column) == (2, 26)
    assert finding.source == "model = keras.Sequential(]"
    assert finding.message.startswith(f"Python {sys.version_info.major}.{sys.version_info.minor} cannot parse it: ")


def test_python_2_is_recognised(tmp_path: Path) -> None:
    finding = only(written(tmp_path / "train.py", b'print "epoch", 1\n'))
    assert finding.rule.id == "lint.syntax-error"
    assert finding.message.endswith("it looks like Python 2")


def test_a_newer_python_is_told_as_a_syntax_error(tmp_path: Path) -> None:
    assert only(written(tmp_path / "new.py", b"x = 1 ?? 2\n")).rule.id == "lint.syntax-error"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + BAD.encode(), id="PEP 263"),
        pytest.param(b"\xef\xbb\xbf" + BAD.encode(), id="byte order mark"),
        pytest.param(BAD.replace("\n", "\r\n").encode(), id="Windows line ends"),
        pytest.param(BAD.replace("\n", "\r").encode(), id="old Macintosh line ends"),
        pytest.param(b"# \xe6\x97\xa5\xe6\x9c\xac\n" + BAD.encode(), id="UTF-8"),
        pytest.param(b"\x0c\n" + BAD.encode(), id="form feed"),
    ],
)
def test_what_python_reads_is_read(tmp_path: Path, data: bytes) -> None:
    assert only(written(tmp_path / "train.py", data)).rule.id == "lint.multi-gpu-model"


@pytest.mark.parametrize(
    ("data", "words", "line"),
    [
        pytest.param(b"import keras\n# caf\xe9\n", "byte 0xe9 is not utf-8", 2, id="not UTF-8"),
        pytest.param(b"x = 1\n\ny = '\0'\n", "null bytes", 3, id="null bytes"),
        pytest.param(b"# coding: klingon\n", "encoding", 1, id="unknown encoding"),
        pytest.param(b"\xef\xbb\xbf# coding: latin-1\n", "encoding", 1, id="two encodings"),
        pytest.param(b"\xff\xfex\x00", "null bytes", 1, id="UTF-16"),
    ],
)
def test_bytes_that_are_no_source(tmp_path: Path, data: bytes, words: str, line: int) -> None:
    finding = only(written(tmp_path / "train.py", data))
    assert finding.rule.id == "lint.unreadable-file"
    assert words in finding.message
    assert finding.spot.line == line


def test_an_empty_file_is_clean(tmp_path: Path) -> None:
    report = lint([str(written(tmp_path / "train.py", b""))])
    assert (report.findings, len(report.files)) == ((), 1)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("x = " + "(" * 5000 + ")" * 5000, id="parentheses"),
        pytest.param(
            "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\nx = " + "-" * 50000 + "1", id="signs"
        ),
        pytest.param(
            "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\nx = s" + ".a()" * 20000, id="calls"
        ),
    ],
)
def test_code_that_is_nested_too_deeply(tmp_path: Path, code: str) -> None:
    finding = only(written(tmp_path / "train.py", code.encode()))
    assert finding.rule.id in {"lint.unreadable-file", "lint.syntax-error"}
    assert "nested" in finding.message


def test_functions_that_call_each_other_end(tmp_path: Path) -> None:
    code = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
    code += "def f(x):\n    return g(x + 1)\ndef g(x):\n    return f([x])\nf(1)\n"
    code += "class A:\n    def m(self):\n        return self.m()\nA().m()\nclass B(B):\n    pass\nB().x()\n"
    assert lint([str(written(tmp_path / "train.py", code.encode()))]).findings == ()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert only(tmp_path / "absent.py").message == "no such file or folder"


def test_a_broken_link(tmp_path: Path) -> None:
    link = tmp_path / "train.py"
    link.symlink_to(tmp_path / "gone.py")
    assert only(link).message == f"a link to {tmp_path / 'gone.py'}, which does not exist"


def test_a_link_to_itself(tmp_path: Path) -> None:
    link = tmp_path / "train.py"
    link.symlink_to(link)
    assert only(link).rule.id == "lint.unreadable-file"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = written(tmp_path / "train.py", b"x = 1\n")
    path.chmod(0)
    assert "Permission denied" in only(path).message


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    assert only(tmp_path / "train.py").message == "it is no regular file"


def test_the_rest_goes_on(tmp_path: Path) -> None:
    written(tmp_path / "a.py", b"def :\n")
    written(tmp_path / "b.py", b"\xff\n")
    written(tmp_path / "c.ipynb", b"{")
    written(tmp_path / "d.py", BAD.encode())
    found = [(Path(item.spot.path).name, item.rule.id) for item in lint([str(tmp_path)]).findings]
    assert found == [
        ("a.py", "lint.syntax-error"),
        ("b.py", "lint.unreadable-file"),
        ("c.ipynb", "lint.unreadable-file"),
        ("d.py", "lint.multi-gpu-model"),
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param("{", "no JSON", id="broken"),
        pytest.param("[]", "no list of cells", id="a list"),
        pytest.param('{"cells": 3}', "no list of cells", id="no cells"),
        pytest.param('{"cells": [], "metadata": {"language_info": {"name": "R"}}}', "r, not Python", id="R"),
        pytest.param("[" * 100000, "nested too deeply", id="deep"),
    ],
)
def test_what_is_no_notebook(tmp_path: Path, document: str, words: str) -> None:
    finding = only(written(tmp_path / "a.ipynb", document.encode()))
    assert finding.rule.id == "lint.unreadable-file"
    assert words in finding.message


def test_odd_cells_do_no_harm(tmp_path: Path) -> None:
    cells = [3, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 5}, {"cell_type": "code", "source": ["", 1]}]
    text = json.dumps({"cells": cells, "metadata": []})
    assert lint([str(written(tmp_path / "a.ipynb", text.encode()))]).findings == ()


def test_a_folder_leaves_out_what_is_not_the_users_own(tmp_path: Path) -> None:
    for folder in (".git", "venv", "mine/__pycache__", "lib/site-packages/keras", "other", "mine"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        written(tmp_path / folder / "train.py", b"x = 1\n")
    written(tmp_path / "other" / "pyvenv.cfg", b"")
    written(tmp_path / "mine" / "a.ipynb", b'{"cells": []}')
    written(tmp_path / "mine" / "notes.txt", b"no script")
    written(tmp_path / "mine" / ".hidden.py", b"x = 1\n")
    (tmp_path / "mine" / "loop").symlink_to(tmp_path)
    files = [str(Path(file).relative_to(tmp_path)) for file in lint([str(tmp_path)]).files]
    assert files == ["mine/a.ipynb", "mine/train.py"]


def test_a_file_that_is_named_twice_is_told_once(tmp_path: Path) -> None:
    path = str(written(tmp_path / "train.py", BAD.encode()))
    assert len(lint([path, path, str(tmp_path)]).findings) == 1


def test_a_folder_without_a_script_is_noted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = str(written(tmp_path / "train.py", b"x = 1\n"))
    assert lint([path, str(tmp_path / "empty")]).notes == (
        f"{tmp_path / 'empty'}: no Python file and no notebook in this folder",
    )


def test_nothing_to_look_at_is_never_clean(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no Python file and no notebook in"):
        lint([str(tmp_path)])
