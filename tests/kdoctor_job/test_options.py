import re
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.errors import UsageError
from kdoctor_job.options import own_job


@pytest.mark.parametrize("values", [(3, None, None), (None, 4, None), (None, None, 5.0), (0, 4, 5.0)])
def test_options_of_a_model_require_it(values: tuple[int | None, int | None, float | None]) -> None:
    steps, steps_per_epoch, model_timeout = values
    with pytest.raises(UsageError, match="--model\n"):
        own_job(steps=steps, steps_per_epoch=steps_per_epoch, model_timeout=model_timeout)
    assert own_job() is None
    for model, data in (("jobs.py:build", None), (None, "jobs.py:data")):
        with pytest.raises(UsageError) as half:
            own_job(model=model, data=data)
        assert "--model jobs.py:build --data jobs.py:data, " in str(half.value.hint)
    with pytest.raises(UsageError, match="--fit-arguments requires --model"):
        own_job(fit_arguments="job:arguments")
    with pytest.raises(UsageError, match=r"--fit-arguments job.py: expected"):
        own_job(model="job:build", data="job:read", fit_arguments="job.py")


def test_files_and_modules_name_the_same_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("jobs/train.py", "read.py", "my job/train.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("def build(): ...\ndata = build\n")
    named = ("jobs.train", "./jobs/train.py", f"{tmp_path}/jobs/train.py", "jobs/../jobs/train.py")
    settings = [own_job(model=f"{name}:build", data="read.py:data").scenario.settings for name in named]  # type: ignore[union-attr]
    assert settings == [settings[0]] * len(named)
    assert dict(settings[0])["data"] == "read:data"
    with pytest.raises(UsageError, match=r"my job/train\.py cannot be imported") as caught:
        own_job(model="my job/train.py:build", data="read.py:data")
    assert f"cd '{tmp_path}/my job'" in str(caught.value.hint)
    monkeypatch.chdir(tmp_path / "my job")
    Path("my-train.py").touch()
    with pytest.raises(UsageError, match="cannot be imported") as caught:
        own_job(model="my-train.py:build", data="train.py:data")
    assert "rename" in str(caught.value.hint)
    with pytest.raises(UsageError, match="cannot be imported from the working directory"):
        own_job(model="../read.py:build", data="train.py:data")


@cases(
    ("jbo.py:build", "jbo.py: no such file; did you mean 'job.py'?"),
    ("job.py:biuld", "has no biuld; did you mean 'build'?"),
    ("job:biuld", "has no biuld; did you mean 'build'?"),
    ("job", "expected FILE.py:FUNCTION"),
    ("job.py:imported.build", None), ("job.py:later", None), ("open.py:anything", None), ("broken.py:build", None),
    ("keras.applications:MobileNetV2", None),
)  # fmt: skip
def test_misspelt_file_or_function_is_found_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, message: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("import os as imported\ndef build():\n    global later\nfor later in (1,): ...\n")
    (tmp_path / "open.py").write_text("from os import *\n")
    (tmp_path / "broken.py").write_text("def build(:\n")
    if message is None:
        assert own_job(model=model, data="job.py:build")
    else:
        with pytest.raises(UsageError, match=re.escape(message)):
            own_job(model=model, data="job.py:build")


@cases(
    ("train.py --batch 64", ""), ("'./my train.py'", ""), ("jobs.train --lr 1", ""),
    ("trian.py", "trian.py: no such file; did you mean 'train.py'?"), ("train.py 'x", "No closing quotation"),
    ("a/b", "expected a script such as train.py"), ("", "expected a script such as train.py"),
    ("my train.py --lr 1", ""), ("b.ipynb", "b.ipynb: no such file"),
    ("python train.py", "python is not a script"),
    ("-m jobs.train", "-m is not a script\nLeave it out: --model jobs.train"), ("jobs", "a folder without __main__.py"),
)  # fmt: skip
def test_script_with_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, refused: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    Path("my train.py").touch()
    Path("jobs").mkdir()
    if refused:
        with pytest.raises(UsageError, match=re.escape(refused)):
            own_job(model=model)
    else:
        training = own_job(model=model, model_timeout=50.0)
        assert training
        settings, quoted = dict(training.scenario.settings), re.sub("^my train.py", "'my train.py'", model)
        assert (settings["model"], settings["budget_s"], training.folder) == (quoted, 40, tmp_path)
    with pytest.raises(UsageError, match="--restore cannot be used with --model SCRIPT"):
        own_job(model=model, restore=tmp_path)
