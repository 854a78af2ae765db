"""``kdoctor.Watch`` during real trainings with planted faults."""

import contextlib
import json
import re
import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kdoctor
from helpers.command import captured, environ
from helpers.locks import lock
from helpers.tiers import every_second_day
from kdoctor.errors import UsageError
from kdoctor.lock.store import write_lock

ROOT = Path(__file__).parents[2]
QUICK = ("healthy", "planted", "canary", "wrong_bit")
OTHERS = ("single", "wrong_at_first", "stall", "starved", "stop", "loop", "broken")
NOT_ON_CPU = {"watch.gpus-busy": "skip", "watch.gpus-unslowed": "skip", "watch.kernel-log": "skip"}


def train(package: str, *names: str, **variables: str) -> dict[str, Any]:
    """What each training found, in one child process."""
    paths = ":".join(str(ROOT / part) for part in ("doctor", "checks", "checklists", "tests"))
    command = [sys.executable, "-m", "helpers.kdoctor_watch.watched_jobs", package, *names]
    env = environ(PYTHONPATH=paths, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", **variables)
    done = captured(command, env=env, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history") / "history.sqlite"


@pytest.fixture(scope="module", params=[pytest.param("keras", marks=every_second_day(1))])
def found(request: pytest.FixtureRequest, history: Path) -> dict[str, Any]:
    return train(request.param, *QUICK, KDOCTOR_HISTORY=str(history), KDOCTOR_NO_HISTORY="")


def failed(found: dict[str, Any]) -> set[str]:
    return {check for check, status in found["statuses"].items() if status == "fail"}


def judge(found: dict[str, Any]) -> None:
    """The planted faults are found, by name and step, and nothing else."""
    assert failed(found["healthy"]) == set()
    assert found["healthy"]["json"] == "watch"
    assert found["healthy"]["board"] == ["kdoctor/findings", "kdoctor/step_ms"]
    passed = dict.fromkeys(("watch.replicas-equal", "watch.finite", "watch.input", "watch.stall"), "pass")
    assert found["healthy"]["statuses"].items() >= {**NOT_ON_CPU, **passed}.items()

    planted = found["planted"]
    assert failed(planted) == {"watch.replicas-equal", "watch.finite"}
    subject, observed = next(iter((name, text) for name, text in planted["findings"].items() if "replicas" in name))
    assert re.fullmatch(r"watch.replicas-equal \S*dense\S*/kernel\S* on replica 1 \(CPU:1\)", subject)
    numbers = re.match(r"1 of 21 values differs from replica 0, .* step (\d+) \(equal after step (\d+)\)", observed)
    assert numbers is not None
    assert int(numbers[2]) < 24 <= int(numbers[1]) <= int(numbers[2]) + 10
    assert "after step 37 (last finite after step 36)" in planted["findings"]["watch.finite loss"]
    assert [one.split()[0] for one in planted["live"][:2]] == ["watch.replicas-equal", "watch.finite"]

    assert failed(found["canary"]) == set()
    assert found["canary"]["statuses"]["watch.same-bits"] == "pass"
    assert found["canary"]["same"]
    rounds = re.search(r"on 2 devices in (\d+) rounds", found["canary"]["seen"])
    assert rounds is not None
    assert int(rounds[1]) >= 3

    assert failed(found["wrong_bit"]) == {"watch.same-bits"}
    ((subject, observed),) = found["wrong_bit"]["findings"].items()
    assert subject == "watch.same-bits CPU:1"
    steps = re.search(r"attention: 1 of 256 .* after step (\d+) .* after step (\d+)", observed)
    assert steps is not None
    assert int(steps[2]) < int(steps[1])
    # ModelCheckpoint counts from 1, so the file of the last clean step has the next number.
    assert f"/{int(steps[2]) + 1}.weights.h5" in found["wrong_bit"]["fixes"][0]


def judge_others(found: dict[str, Any]) -> None:
    """Faults of the other kinds, and what happens then."""
    # It is said before the first step.
    assert found["wrong_at_first"]["live"] == ["watch.same-bits -1"] * 2
    assert set(found["wrong_at_first"]["findings"]) == {f"watch.same-bits CPU:{place}" for place in range(2)}

    assert failed(found["single"]) == {"watch.finite"}
    assert "step 37 (last finite after step 36)" in found["single"]["findings"]["watch.finite loss"]

    assert failed(found["stall"]) == {"watch.stall"}
    assert list(found["stall"]["findings"]) == ["watch.stall step 30"]
    took = re.match(r"took ([0-9.]+) s", found["stall"]["findings"]["watch.stall step 30"])
    assert took is not None
    assert found["stall"]["slept"] - 0.1 <= float(took[1]) < 1.5 * found["stall"]["slept"]

    assert failed(found["starved"]) == {"watch.input"}

    assert failed(found["stop"]) == {"watch.finite"}
    assert found["stop"]["saved"]
    assert found["stop"]["verdict"] == "fail"
    assert found["stop"]["steps"] == 19

    assert failed(found["loop"]) == {"watch.finite"}
    assert (found["loop"]["stopped"], found["loop"]["saved"], found["loop"]["seen"]) == (True, True, 12)
    gradient = next(text for name, text in found["loop"]["findings"].items() if "gradient of" in name)
    assert "after step 12 (last finite after step 11)" in gradient

    assert failed(found["broken"]) == {"watch.finite"}
    assert (found["broken"]["raised"], found["broken"]["interrupted"]) == ("KeyboardInterrupt", True)


@pytest.mark.tensorflow
def test_planted_faults_are_found_during_a_fit(found: dict[str, Any]) -> None:
    judge(found)


@pytest.mark.tensorflow
def test_history_keeps_the_report(found: dict[str, Any], history: Path) -> None:
    with contextlib.closing(sqlite3.connect(history)) as database:
        rows = database.execute("SELECT checklist, conclusion FROM runs").fetchall()
    assert rows == [("watch", found["healthy"]["verdict"])]


@pytest.mark.smoke_full
@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_every_planted_fault_is_found_with_both_packages(package: str, tmp_path: Path) -> None:
    found = train(package, *QUICK, *OTHERS, KDOCTOR_HISTORY=str(tmp_path / "history.sqlite"), KDOCTOR_NO_HISTORY="")
    judge(found)
    judge_others(found)


@every_second_day(0)
def test_changed_bit_is_found_on_jax_without_tensorflow() -> None:
    paths = ":".join(str(ROOT / part) for part in ("doctor", "checks", "checklists", "tests"))
    command = [sys.executable, "-m", "helpers.kdoctor_watch.watched_jax"]
    done = captured(command, env=environ(PYTHONPATH=paths), timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    finding, canary, loop, imported = done.stdout.splitlines()
    assert re.match(
        r"watch.replicas-equal \S*/kernel on replica 1 \(cpu:1\): 1 of 132 values .* step 2\d \(equal after step",
        finding,
    )
    assert re.match(r"pass 6 programs .* on 2 devices in [0-9]+ rounds", canary)
    assert re.match(r"loss: .* after step 5 .*, gradient of sequential/dense/bias: .* after step 9 ", loop)
    assert imported == "tensorflow: False"


def test_step_outside_of_the_context_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="with kdoctor"):
        kdoctor.Watch().step(1.0)


class Model:
    """What a callback sees of a model that has no variables."""

    variables = non_trainable_variables = ()
    stop_training = False

    def save(self, path: str) -> None:
        Path(path).touch()


def begin_fit(**settings: Any) -> kdoctor.Watch:
    watch = kdoctor.Watch(history=False, **settings)
    watch.set_model(Model())
    watch.on_train_begin()
    return watch


def test_digest_of_the_lock_becomes_a_tag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorded, tags = lock(), dict[str, str]()
    write_lock(tmp_path / "node.lock.yaml", recorded, None)
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(active_run=object, set_tags=tags.update))
    watch = begin_fit(lock=tmp_path / "node.lock.yaml")
    assert tags["kdoctor.lock"] == recorded.digest
    assert "kdoctor.verdict" not in tags
    watch.on_train_end()
    assert watch.report is not None
    assert tags["kdoctor.verdict"] == watch.report.verdict.conclusion.value
    with pytest.raises(UsageError, match=r"none\.lock\.yaml"):
        begin_fit(lock=tmp_path / "none.lock.yaml")


def fit_epoch(watch: kdoctor.Watch, losses: list[float]) -> None:
    """As Keras does with data of unknown length: one more step begins than there are batches."""
    watch.on_epoch_begin(0)
    for batch, loss in enumerate(losses):
        watch.on_train_batch_begin(batch)
        watch.on_train_batch_end(batch, {"loss": loss})
    watch.on_train_batch_begin(len(losses))
    watch.on_epoch_end(0)


def test_steps_of_epochs_of_unknown_length_are_numbered_without_gaps() -> None:
    watch = begin_fit()
    for losses in ([1.0] * 3, [1.0, float("nan")]):
        fit_epoch(watch, losses)
    watch.on_train_end()
    assert watch.report is not None
    result = next(result for result in watch.report.results if result.id == "watch.finite")
    assert "step 4 (last finite after step 3)" in result.findings[0].finding.observed


@pytest.mark.parametrize("stops", [True, False])
def test_stop_that_was_asked_for_comes_before_the_step_after_a_bad_one(tmp_path: Path, *, stops: bool) -> None:
    watch = begin_fit(on_error="stop" if stops else "report", checkpoint=tmp_path / "last.keras")
    stopped = []
    for batch, loss in enumerate([1.0, 1.0, float("inf"), 1.0]):
        watch.on_train_batch_begin(batch)
        stopped.append(watch.model.stop_training)
        watch.on_train_batch_end(batch, {"loss": loss})
        assert watch._session  # a report is made in a thread, at any time
        watch._session.read()
    watch.on_train_end()
    assert stopped == [False, False, False, stops]
    assert (tmp_path / "last.keras").exists() is stops
