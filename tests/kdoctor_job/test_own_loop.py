"""``kdoctor check --loop --restore``: real training loops that are killed and go on."""

from pathlib import Path

import pytest
from benchmarks.restore_trials import LOOPS, loop_trial

from helpers.command import kdoctor
from kdoctor.errors import UsageError
from kdoctor_job.options import own_job

OF_WORKERS = "loop of two workers without the position"


@pytest.mark.smoke_full
@pytest.mark.parametrize("name", ["loop", "loop with two files", OF_WORKERS])
def test_only_a_loop_that_forgets_goes_on_differently(name: str, tmp_path: Path) -> None:
    found = loop_trial(LOOPS[name], tmp_path)
    assert [problem[: len(wanted)] for problem, wanted in zip(found, LOOPS[name].findings, strict=True)] == list(
        LOOPS[name].findings
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.smoke_full
def test_loop_on_jax_goes_on(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import pathlib, keras\n"
        "def loop(folder):\n"
        "    assert keras.backend.backend() == 'jax'\n"
        "    place = pathlib.Path(folder, 'state')\n"
        "    for step in range(int(place.read_text()) if place.exists() else 0, 100):\n"
        "        place.with_suffix('.part').write_text(str(step + 1))\n"
        "        place.with_suffix('.part').replace(place)\n"
        "        yield float(keras.ops.cos(1.0 * step))\n"
    )
    options = ("--loop", "job.py:loop", "--restore", str(tmp_path), "--checklist", "cpu-smoke", "--no-smoke")
    done = kdoctor(
        "check", *options, "--select", "job", cwd=tmp_path, timeout_s=300, variables={"KERAS_BACKEND": "jax"}
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loop": "train:loop"}, "--loop requires --restore"),
        ({"loop": "train", "restore": Path("/data")}, "or package.module:function"),
        ({"loop": "train:loop", "restore": Path("/data"), "model": "train:build"}, "--model"),
        ({"workers": 2}, "--workers requires --loop"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        own_job(**options)  # type: ignore[arg-type]


def test_scenario_has_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/train.py").write_text("def loop(folder): ...\n")
    made = own_job(loop="./jobs/train.py:loop", restore=Path("/data"), workers=2)
    assert made is not None
    settings = dict(made.scenario.settings)
    assert (settings["loop"], settings["workers"], settings["restore"]) == ("jobs.train:loop", 2, "/data")
    assert made.scenario.program.is_file()
