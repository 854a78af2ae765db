"""``kdoctor check --model --data --restore``: real jobs that are saved, killed and restored."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pytest
from benchmarks.restore_trials import JOBS, trial

from helpers.command import environ, kdoctor
from helpers.tiers import tiered
from kdoctor.errors import UsageError
from kdoctor_job.options import own_job

LEFT = "kdoctor-restore-left"
JOB = """
import keras, numpy as np, tensorflow as tf

def data():
    numbers = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((numbers, numbers[:, :1])).batch(16)

def build(*layers, optimizer="adam"):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model

def random():
    return build(keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dropout(0.3))

class Own(keras.layers.Layer):
    def call(self, inputs):
        return 2 * inputs

def unregistered():
    return build(Own())

@keras.saving.register_keras_serializable()
class Attribute(keras.layers.Layer):
    factor = 1.0

    def call(self, inputs):
        return self.factor * inputs

def attribute():
    model = build(Attribute())
    model.layers[0].factor = 3.0
    return model

@keras.saving.register_keras_serializable()
class Noise(keras.layers.Layer):
    def call(self, inputs, training=None):
        return inputs + tf.random.normal(tf.shape(inputs), stddev=0.3) if training else inputs

def noisy():
    return build(Noise())

def noisy_attribute():
    model = build(Noise(), Attribute())
    model.layers[1].factor = 3.0
    return model

def averaged():
    return build(optimizer=keras.optimizers.Adam(0.01, use_ema=True))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("restored")
    (made / "job.py").write_text(JOB, encoding="utf-8")
    return made


def check(folder: Path, model: str, restore: Path, steps: int = 4) -> dict[str, Any]:
    names = ("--model", f"job:{model}", "--data", "job:data", "--restore", str(restore))
    options = (*names, "--steps", str(steps), "--replicas", "2", "--format", "json")
    select = ("--select", "job.restores", "--select", "job.resumes-exactly", "--select", "job.save-interval")
    done = kdoctor("check", *options, *select, cwd=folder, timeout_s=300)
    return {result["id"]: result for result in json.loads(done.stdout)["results"] if result["family"] == "job"}


@pytest.mark.tensorflow
def test_random_layers_and_statistics_come_back(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.keras").touch()
    found = check(folder, "random", tmp_path / "new" / "checkpoints")
    assert found["job.restores"]["status"] == "pass", found["job.restores"]
    subjects = [item["subject"] for item in found["job.restores"]["evidence"]]
    assert subjects == ["the saved model", "one device", "half-written save", "BackupAndRestore"]
    assert found["job.save-interval"]["status"] == "pass"
    assert [item["subject"] for item in found["job.resumes-exactly"]["findings"]] == ["random numbers"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.keras"]


@pytest.mark.tensorflow
def test_folder_that_cannot_be_written_is_a_failure(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = check(folder, "random", tmp_path / "file", steps=0)
    assert [item["subject"] for item in found["job.restores"]["findings"]] == ["saving"]


TRIED = (
    "BackupAndRestore(save_freq=3)",
    "parts of different sizes, save_freq=3",
    "shuffled, more than is trained",
    "two optimizers",
    "without the second optimizer",
    "saved in a thread",
)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", tiered(TRIED, TRIED[2:]))
def test_what_does_not_come_back_is_found(name: str, tmp_path: Path) -> None:
    assert trial(JOBS[name], tmp_path) == list(JOBS[name].findings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tensorflow
@pytest.mark.parametrize("touch", [Path.touch, Mock(side_effect=OSError("no space left"))], ids=["space", "full"])
def test_folder_is_left_behind_when_its_process_has_ended(touch: Any, tmp_path: Path) -> None:
    from kdoctor_job.target.restoring import in_new_folder

    seen: list[Any] = []
    case: Any = SimpleNamespace(
        settings={"restore": str(tmp_path)}, note=lambda job: seen.append(job.get("left_behind"))
    )

    def leave(folder: Path, _: object) -> None:
        copytree(folder, tmp_path / LEFT)

    with patch.object(Path, "touch", touch):
        in_new_folder(case, lambda *_: in_new_folder(case, leave))
        in_new_folder(case, lambda *_: None)
    assert [left for left in seen if left is not None] == [[], [], [str(tmp_path / LEFT)]]


@pytest.mark.smoke_full
@pytest.mark.parametrize("model", ["build", "averaged", "noisy"])
def test_optimizers_come_back(model: str, folder: Path, tmp_path: Path) -> None:
    assert check(folder, model, tmp_path)["job.restores"]["status"] == "pass"


@pytest.mark.smoke_full
@pytest.mark.parametrize(
    ("model", "subject"),
    [
        ("unregistered", "loading on all replicas"),
        ("attribute", "the saved model"),
        ("noisy_attribute", "the saved model"),
    ],
)
def test_what_is_not_saved_is_found(model: str, subject: str, folder: Path, tmp_path: Path) -> None:
    found = check(folder, model, tmp_path)["job.restores"]
    assert (found["status"], found["findings"][0]["subject"]) == ("fail", subject)
    assert list(tmp_path.iterdir()) == []


PREFLIGHT = """
import json, sys, kdoctor, job
found = kdoctor.preflight(job.build, job.data, steps=2, restore=sys.argv[1])
print(json.dumps({one.id: one.status.value for one in found.report.results}))
"""


@pytest.mark.smoke_full
def test_preflight_restores_in_fresh_processes(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PREFLIGHT, str(tmp_path)]
    variables = environ(PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    done = subprocess.run(
        command, cwd=folder, check=True, text=True, stdout=subprocess.PIPE, timeout=300, env=variables
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["job.restores"], found["job.save-interval"]) == ("pass", "pass")
    assert list(tmp_path.iterdir()) == []


def test_restoring_requires_a_model() -> None:
    with pytest.raises(UsageError, match="--restore requires --model"):
        own_job(restore=Path("saves"))
    asked = own_job(model="job:build", data="job:data", restore=Path("saves"))
    assert asked is not None
    assert asked.scenario.cases == ("own-model", "restore")
    assert dict(asked.scenario.settings)["restore"] == str(Path("saves").absolute())
