from pathlib import Path

import pytest

from kdoctor.errors import UsageError
from kdoctor_job.options import own_job


@pytest.mark.parametrize("values", [(3, None, None), (None, 4, None), (None, None, 5.0), (0, 4, 5.0)])
def test_options_of_a_model_require_it(values: tuple[int | None, int | None, float | None]) -> None:
    steps, steps_per_epoch, model_timeout = values
    with pytest.raises(UsageError, match="--model\n"):
        own_job(steps=steps, steps_per_epoch=steps_per_epoch, model_timeout=model_timeout)
    assert own_job() is None
    with pytest.raises(UsageError, match="--fit-arguments requires --model"):
        own_job(fit_arguments="job:arguments")
    with pytest.raises(UsageError, match=r"--fit-arguments job.py: expected"):
        own_job(model="job:build", data="job:read", fit_arguments="job.py")


def test_files_and_modules_name_the_same_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = ("jobs.train", "./jobs/train.py", f"{tmp_path}/jobs/train.py", "jobs/../jobs/train.py")
    settings = [own_job(model=f"{name}:build", data="read.py:data").scenario.settings for name in named]  # type: ignore[union-attr]
    assert settings == [settings[0]] * len(named)
    assert dict(settings[0])["data"] == "read:data"
    with pytest.raises(UsageError, match="is not in the working directory") as caught:
        own_job(model="/elsewhere/train.py:build", data="read.py:data")
    assert "cd /elsewhere" in str(caught.value.hint)
