"""Files that cannot be read or parsed: one finding each, and the other files are linted."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdoctor.errors import UsageError
from kdoctor_lint import engine, files
from kdoctor_lint.engine import lint
from kdoctor_lint.flow.analyze import analyze
from kdoctor_lint.model import Finding
from kdoctor_lint.registry import RULES

BAD = RULES["lint.multi-gpu-model"].bad


def only(path: Path) -> Finding:
    report = lint([str(path)])
    assert len(report.findings) == 1
    return report.findings[0]


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_syntax_error_has_place_source_and_python_version(tmp_path: Path) -> None:
    finding = only(written(tmp_path / "train.py", b"import keras\nmodel = keras.Sequential(]\n"))
    assert finding.rule.id == "lint.syntax-error"
    assert (finding.spot.line, finding.spot.column) == (2, 26)
    assert finding.source == "model = keras.Sequential(]"
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in finding.message


def test_python_2_is_named(tmp_path: Path) -> None:
    finding = only(written(tmp_path / "train.py", b'print "epoch", 1\n'))
    assert finding.rule.id == "lint.syntax-error"
    assert "Python 2" in finding.message.replace(f"Python {sys.version_info.major}.", "")


def test_newer_python_is_syntax_error(tmp_path: Path) -> None:
    assert only(written(tmp_path / "new.py", b"x = 1 ?? 2\n")).rule.id == "lint.syntax-error"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + BAD.encode(), id="PEP 263"),
        pytest.param(b"\xef\xbb\xbf" + BAD.encode(), id="byte order mark"),
        pytest.param(BAD.replace("\n", "\r\n").encode(), id="Windows line ends"),
        pytest.param(BAD.replace("\n", "\r").encode(), id="classic Mac OS line ends"),
        pytest.param(b"# \xe6\x97\xa5\xe6\x9c\xac\n" + BAD.encode(), id="UTF-8"),
        pytest.param(b"\x0c\n" + BAD.encode(), id="form feed"),
    ],
)
def test_encodings_of_python_are_read(tmp_path: Path, data: bytes) -> None:
    assert only(written(tmp_path / "train.py", data)).rule.id == "lint.multi-gpu-model"


@pytest.mark.parametrize(
    ("data", "reason", "line"),
    [
        pytest.param(b"import keras\n# caf\xe9\n", "0xe9", 2, id="not UTF-8"),
        pytest.param(b"x = 1\n\ny = '\0'\n", "null", 3, id="null bytes"),
        pytest.param(b"# coding: klingon\n", "encoding", 1, id="unknown encoding"),
        pytest.param(b"# coding: zip\nx = 1\n", "zip", 1, id="codec of bytes"),
        pytest.param(b"# coding: undefined\nx = 1\n", "undefined", 1, id="codec that never decodes"),
        pytest.param(b"\xef\xbb\xbf# coding: latin-1\n", "encoding", 1, id="two encodings"),
        pytest.param(b"\xff\xfex\x00", "null", 1, id="UTF-16"),
    ],
)
def test_invalid_bytes_are_unreadable_at_their_line(tmp_path: Path, data: bytes, reason: str, line: int) -> None:
    finding = only(written(tmp_path / "train.py", data))
    assert finding.rule.id == "lint.unreadable-file"
    assert reason in finding.message
    assert finding.spot.line == line


def test_empty_file_is_clean(tmp_path: Path) -> None:
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
def test_deeply_nested_code_is_reported(tmp_path: Path, code: str) -> None:
    finding = only(written(tmp_path / "train.py", code.encode()))
    assert finding.rule.id in {"lint.unreadable-file", "lint.syntax-error"}
    assert "nested" in finding.message


def test_deeply_nested_code_without_strategy_is_not_analyzed(tmp_path: Path) -> None:
    code = "x = s" + ".a()" * 400
    assert lint([str(written(tmp_path / "train.py", code.encode()))]).findings == ()
    code = f"import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n{code}"
    assert only(written(tmp_path / "train.py", code.encode())).rule.id == "lint.unreadable-file"


def test_long_sums_are_analyzed(tmp_path: Path) -> None:
    code = BAD + "text = " + " + ".join(f"'{number}'" for number in range(400)) + "\n"
    assert only(written(tmp_path / "train.py", code.encode())).rule.id == "lint.multi-gpu-model"


def test_mutual_recursion_terminates(tmp_path: Path) -> None:
    code = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
    code += "def f(x):\n    return g(x + 1)\ndef g(x):\n    return f([x])\nf(1)\n"
    code += "class A:\n    def m(self):\n        return self.m()\nA().m()\nclass B(B):\n    pass\nB().x()\n"
    assert lint([str(written(tmp_path / "train.py", code.encode()))]).findings == ()


def test_every_missing_path_is_refused(tmp_path: Path) -> None:
    present = written(tmp_path / "train.py", b"x = 1\n")
    with pytest.raises(UsageError) as caught:
        lint([str(present), str(tmp_path / "absent.py"), str(tmp_path / "gone"), ""])
    assert len(caught.value.message.splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("trian.py", "train.py"),
        ("train.ipynb", "train.py"),
        ("nod.py", "node.py"),
        ("x.py", None),
        ("other.py", None),
        ("scr", "src"),
    ],
)
def test_only_near_file_is_suggested(tmp_path: Path, name: str, meant: str | None) -> None:
    for present in ("train.py", "node.py", "a.py", "train.yaml"):
        written(tmp_path / present, b"")
    (tmp_path / "src").mkdir()
    with pytest.raises(UsageError) as caught:
        lint([str(tmp_path / name)])
    assert ("did you mean" in caught.value.message) == (meant is not None)
    assert meant is None or repr(str(tmp_path / meant)) in caught.value.message


@pytest.mark.parametrize("target", ["gone.py", "train.py"])
def test_broken_link_names_its_target(tmp_path: Path, target: str) -> None:
    link = tmp_path / "train.py"
    link.symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match=target):
        lint([str(link)])
    # In a folder that was named, it is one of the findings.
    assert only(tmp_path).rule.id == "lint.unreadable-file"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    path = written(tmp_path / "train.py", b"x = 1\n")
    path.chmod(0)
    assert "Permission denied" in only(path).message


@pytest.mark.parametrize("name", ["iterdir", "read_bytes"])
def test_denied_access_names_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = written(tmp_path / "train.py", b"x = 1\n")
    if name == "iterdir":
        path.unlink()
        path.mkdir()
        monkeypatch.setattr(files, "find_files", lambda paths: (paths, []))
        monkeypatch.setattr(engine, "find_files", lambda paths: (paths, []))

    def refuse(_self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, name, refuse)
    finding = only(path)
    assert "Permission denied" in finding.message
    assert finding.fix.endswith(f"chmod u+rX {path}")


def test_folder_that_cannot_be_listed_is_not_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(top: str, onerror: Callable[[OSError], None]) -> Iterator[tuple[str, list[str], list[str]]]:
        onerror(PermissionError(13, "Permission denied", f"{top}/private"))
        yield top, [], []

    monkeypatch.setattr(os, "walk", walk)
    assert files.find_files([str(tmp_path)]) == ([f"{tmp_path}/private"], [])


def test_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    with pytest.raises(UsageError, match="not a regular file"):
        lint([str(tmp_path / "train.py")])
    assert only(tmp_path).rule.id == "lint.unreadable-file"


def test_fix_suits_the_file(tmp_path: Path) -> None:
    encoding = only(written(tmp_path / "train.py", b"# caf\xe9\n")).fix
    binary = only(written(tmp_path / "train.py", b"\0")).fix
    notebook = only(written(tmp_path / "a.ipynb", b"{")).fix
    assert len({encoding, binary, notebook}) == 3
    assert encoding == RULES["lint.unreadable-file"].fix


def test_other_files_are_linted(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("error", [OverflowError("line too long"), AttributeError("a defect"), RecursionError()])
def test_error_of_the_analysis_is_of_its_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    bad, good = written(tmp_path / "bad.py", BAD.encode()), written(tmp_path / "good.py", BAD.encode())

    def analyzed(*given: object, **options: object) -> object:
        if not failed:
            failed.append(True)
            raise error
        return analyze(*given, **options)  # type: ignore[arg-type]

    failed: list[bool] = []
    monkeypatch.setattr(engine, "analyze", analyzed)
    found = {finding.spot.path: finding.rule.id for finding in lint([str(bad), str(good)]).findings}
    assert found == {str(bad): "lint.unreadable-file", str(good): "lint.multi-gpu-model"}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param("{", "JSON", id="broken"),
        pytest.param("[]", "cells", id="a list"),
        pytest.param('{"cells": 3}', "cells", id="no cells"),
        pytest.param("[" * 100000, "nested", id="deep"),
    ],
)
def test_invalid_notebook_is_unreadable(tmp_path: Path, document: str, reason: str) -> None:
    finding = only(written(tmp_path / "a.ipynb", document.encode()))
    assert finding.rule.id == "lint.unreadable-file"
    assert reason in finding.message


@pytest.mark.parametrize("language", ["R", "julia"])
def test_notebook_of_another_language_is_skipped(tmp_path: Path, language: str) -> None:
    cells = [{"cell_type": "code", "source": ["x <- c(1, 2"]}]
    text = json.dumps({"cells": cells, "metadata": {"language_info": {"name": language}}})
    assert lint([str(written(tmp_path / "a.ipynb", text.encode()))]).findings == ()


def test_more_code_than_fits_in_memory_is_unreadable(tmp_path: Path) -> None:
    finding = only(written(tmp_path / "a.py", b"x = [" + b"1," * 2_500_000 + b"]\n"))
    assert finding.rule.id == "lint.unreadable-file"
    assert "more than 5 MB of code" in finding.message


def test_malformed_cells_are_skipped(tmp_path: Path) -> None:
    cells = [3, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 5}, {"cell_type": "code", "source": ["", 1]}]
    text = json.dumps({"cells": cells, "metadata": []})
    assert lint([str(written(tmp_path / "a.ipynb", text.encode()))]).findings == ()


def test_folder_skips_environments_and_hidden_files(tmp_path: Path) -> None:
    for folder in (".git", "venv", "mine/__pycache__", "lib/site-packages/keras", "other", "mine"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        written(tmp_path / folder / "train.py", b"x = 1\n")
    written(tmp_path / "other" / "pyvenv.cfg", b"")
    written(tmp_path / "mine" / "a.ipynb", b'{"cells": []}')
    written(tmp_path / "mine" / "notes.txt", b"text")
    written(tmp_path / "mine" / ".hidden.py", b"x = 1\n")
    (tmp_path / "mine" / "loop").symlink_to(tmp_path)
    files = [str(Path(file).relative_to(tmp_path)) for file in lint([str(tmp_path)]).files]
    assert files == ["mine/a.ipynb", "mine/train.py"]


def test_file_given_twice_is_linted_once(tmp_path: Path) -> None:
    path = str(written(tmp_path / "train.py", BAD.encode()))
    assert len(lint([path, path, str(tmp_path)]).findings) == 1


def test_folder_without_scripts_is_noted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = str(written(tmp_path / "train.py", b"x = 1\n"))
    (note,) = lint([path, str(tmp_path / "empty")]).notes
    assert note.startswith(f"{tmp_path / 'empty'}: ")


def test_no_files_is_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(str(tmp_path))):
        lint([str(tmp_path)])
