"""An environment with one defect, made by pip, is diagnosed from what its own import of TensorFlow prints."""

import shutil
import subprocess
from pathlib import Path

import pytest

from drill.conftest import copy
from helpers.command import environ
from kdoctor.catalog.load import load_catalog
from kdoctor_diagnose.diagnose import diagnose_text

pytestmark = [pytest.mark.drill, pytest.mark.tensorflow]

PIP = "$PYTHON -m pip --quiet --disable-pip-version-check"
IMPORT = "import tensorflow as tf; print(tf.distribute.MirroredStrategy, tf.keras.layers.Dense)"

DEFECTS = {
    "numpy-removed": (f"{PIP} uninstall --yes numpy", "numpy_missing"),
    "protobuf-removed": (f"{PIP} uninstall --yes protobuf", "protobuf_mismatch"),
    "protobuf-too-old": (f"{PIP} install --no-deps protobuf==3.20.3", "protobuf_mismatch"),
    "protobuf-file-deleted": ("rm $SITE/google/protobuf/message.py", "protobuf_mismatch"),
    "keras-removed": (f"{PIP} uninstall --yes keras", "keras_missing"),
    "keras-folder-deleted": ("rm -r $SITE/keras/src", "keras_missing"),
    # pip removes the files of the other one, too.
    "one-of-two-tensorflows-removed": (
        f"{PIP} install --no-deps tensorflow-cpu && {PIP} uninstall --yes tensorflow-cpu",
        "tensorflow_mixed",
    ),
}
"""What was done to the environment (bash), and the failure."""


@pytest.mark.parametrize("defect", DEFECTS)
def test_defect_is_diagnosed_from_its_log(defect: str, healthy: Path, tmp_path: Path) -> None:
    breaks, failure = DEFECTS[defect]
    job = copy(healthy, tmp_path / "job")
    (site,) = job.glob("lib/python*/site-packages")
    variables = environ(PYTHON=str(job / "bin/python"), SITE=str(site))
    subprocess.run(["bash", "-c", breaks], check=True, env=variables, timeout=600)
    done = subprocess.run(
        [job / "bin/python", "-c", IMPORT],
        check=False, cwd=tmp_path, env=variables, text=True, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    shutil.rmtree(job)
    catalog = load_catalog()
    first = diagnose_text(done.stdout, catalog.checks, catalog.scenarios).first
    assert (first.id if first else None) == failure, done.stdout
