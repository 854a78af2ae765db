"""The plugin in flake8 itself, if it is installed next to kdoctor."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(
        find_spec("flake8") is None, reason="flake8 is not installed next to kdoctor: pip install flake8"
    ),
]
SCRIPT = """import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
optimizer = keras.optimizers.Adam(lr=0.1)
model = keras.Sequential([keras.layers.Dense(1)])
with strategy.scope():
    model.compile(optimizer, "mse")
model.save_weights("x.ckpt")  # noqa: KD403
model.save("x")  # kdoctor: ignore[KD403] read by an old program
model.save("y")  # noqa
model.evaluate(data, workers=4)  # noqa: E501
"""


def flake8(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flake8", "--select", "KD", *arguments]
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, check=False, timeout=120)


def places(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [" ".join(line.split()[:2]) for line in done.stdout.splitlines()]


def test_codes_and_noqa(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = flake8(tmp_path, "train.py")
    assert (done.returncode, done.stderr) == (1, "")
    assert places(done) == ["train.py:5:13: KD403", "train.py:6:9: KD101", "train.py:12:1: KD403"]
    assert places(flake8(tmp_path, "--extend-ignore", "KD1", "train.py")) == [
        "train.py:5:13: KD403",
        "train.py:12:1: KD403",
    ]
    assert places(flake8(tmp_path, "-", stdin=SCRIPT))[0] == "stdin:5:13: KD403"


def test_several_processes_and_encodings(tmp_path: Path) -> None:
    latin = '# coding: latin-1\nimport keras\nname = "é"; keras.optimizers.SGD(lr=1)\n'
    for number in range(8):
        (tmp_path / f"latin_{number}.py").write_text(latin, encoding="latin-1")
    (tmp_path / "marked.py").write_bytes(b"\xef\xbb\xbfimport keras\r\nkeras.optimizers.SGD(lr=1)\r\n")
    done = flake8(tmp_path, "--jobs", "2", ".")
    expected = [*(f"./latin_{number}.py:3:13: KD403" for number in range(8)), "./marked.py:2:1: KD403"]
    assert sorted(places(done)) == expected


def test_mistake_in_the_configuration_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kdoctor.lint]\nselect = ["KDX"]\n', encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = flake8(tmp_path, ".")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("kdoctor: ")
    assert "Traceback" not in done.stderr
    assert done.stderr.count("KDX") == 1
