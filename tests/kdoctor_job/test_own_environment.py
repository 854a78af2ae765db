"""Variables that a job's own code sets before it imports a framework."""

import json
from pathlib import Path

from helpers.cases import cases
from helpers.command import kdoctor
from kdoctor_job.own_environment import set_by

LEGACY = {"TF_USE_LEGACY_KERAS": "1"}


@cases(
    ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport keras", LEGACY),
    ("from os import environ\nimport numpy\nenviron.setdefault('TF_USE_LEGACY_KERAS', '1')", LEGACY),
    ("import os\nos.environ['KERAS_BACKEND'] = 'torch'\nos.environ['KERAS_BACKEND'] = 'jax'", {"KERAS_BACKEND": "jax"}),
    ("import os\nos.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')", {}),  # it is set already
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '2,3'", {}),  # to the same
    ("import os\nimport tensorflow as tf\nos.environ['TF_USE_LEGACY_KERAS'] = '1'", {}),
    ("import os\nfrom keras.layers import Dense\nos.environ['TF_USE_LEGACY_KERAS'] = '1'", {}),
    ("import os\nif os.name == 'nt':\n    os.environ['TF_USE_LEGACY_KERAS'] = '1'", {}),
    ("import os\nos.environ['LD_LIBRARY_PATH'] = '/opt/cuda/lib64'", {}),  # it has no effect in a process that runs
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = str(3)", {}),
    ("settings['TF_USE_LEGACY_KERAS'] = '1'", {}),
    ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nthis is no Python", {}),
)
def test_only_what_is_certain_before_the_import_counts(tmp_path: Path, code: str, expected: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text(code)
    assert set_by(tmp_path / "train.py", {"CUDA_VISIBLE_DEVICES": "2,3"}) == expected


def test_cells_and_magics_of_a_notebook_count(tmp_path: Path) -> None:
    codes = ("%env TF_USE_LEGACY_KERAS=1\n!nvidia-smi", "import os\nos.environ['TF_CONFIG'] = '{}'", "x = !ls")
    cells = [{"cell_type": "code", "source": code} for code in codes]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "% x"}, *cells]}))
    assert set_by(tmp_path / "n.ipynb", {}) == {**LEGACY, "TF_CONFIG": "{}"}
    assert set_by(tmp_path / "missing.py", {}) == {}


def test_whole_run_has_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nimport keras\n")
    run = (
        "check",
        "--model",
        "train.py",
        "--select",
        "versions.python-supported",
        "--no-smoke",
        "--save-snapshot",
        "s",
    )
    done = kdoctor(*run, cwd=tmp_path)
    variables = json.loads((tmp_path / "s").read_text())["facts"]["environment"]["variables"]
    assert variables["CUDA_VISIBLE_DEVICES"] == "0"
    assert "kdoctor: CUDA_VISIBLE_DEVICES=0, as the job sets it" in done.stderr


def test_job_on_another_framework_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n")
    done = kdoctor("check", "--model", "train.py", cwd=tmp_path)
    assert (done.returncode, "KERAS_BACKEND=jax" in done.stderr) == (2, True)
