"""Finding the environment of a project."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.probes.project import find_project_environment, project_folders

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the folders of environments differ on Windows")


def make(folder: Path, mark: str = "pyvenv.cfg") -> Path:
    """An environment as far as files show."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / mark).mkdir() if mark == "conda-meta" else (folder / mark).touch()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "job/src/deep").mkdir(parents=True)
    return tmp_path / "job"


def found(start: Path, home: Path, **environ: str) -> tuple[str | None, str]:
    """The interpreter and the title, without the name of the temporary folder."""
    result = find_project_environment(start, {"HOME": str(home), **environ})
    if result is None:
        return None, ""
    root = str(home.parent)
    return result.python and result.python.removeprefix(root), result.title.replace(root, "")


def problem(start: Path, home: Path) -> str:
    result = find_project_environment(start, {"HOME": str(home)})
    assert result is not None
    assert result.python is None
    return result.problem


def test_real_virtual_environment_is_found(job: Path, home: Path) -> None:
    venv.create(job / ".venv", with_pip=False, symlinks=True)
    python, title = found(job, home)
    assert (python, title) == ("/job/.venv/bin/python", ".venv of the project /job")
    ask = "import sys; print(sys.prefix)"
    answer = subprocess.run([str(job / ".venv/bin/python"), "-c", ask], check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == str(job / ".venv")


@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_usual_folders_are_found(job: Path, home: Path, name: str) -> None:
    make(job / name)
    assert found(job, home) == (f"/job/{name}/bin/python", f"{name} of the project /job")


@pytest.mark.parametrize("name", [".pixi/envs/default", "env"])
def test_conda_environments_in_the_project_are_found(job: Path, home: Path, name: str) -> None:
    make(job / name, "conda-meta")
    assert found(job, home)[0] == f"/job/{name}/bin/python"


def test_hidden_folder_precedes_the_others(job: Path, home: Path) -> None:
    for name in ("venv", "env", ".venv"):
        make(job / name)
    assert found(job, home)[0] == "/job/.venv/bin/python"


@pytest.mark.parametrize("marker", [".git", "pyproject.toml", "uv.lock", "requirements.txt", "environment.yml"])
def test_search_goes_up_to_the_root_of_the_project(job: Path, home: Path, marker: str) -> None:
    make(job / ".venv")
    assert found(job / "src/deep", home) == (None, "")
    (job / marker).touch()
    assert found(job / "src/deep", home) == ("/job/.venv/bin/python", ".venv of the project /job")


def test_search_ends_at_the_root_of_the_project(job: Path, home: Path) -> None:
    make(job.parent / ".venv")
    (job.parent / "pyproject.toml").touch()
    (job / ".git").mkdir()
    assert found(job / "src", home) == (None, "")


def test_member_of_a_workspace_uses_the_environment_of_the_workspace(job: Path, home: Path) -> None:
    make(job / ".venv")
    (job / "uv.lock").touch()
    (job / "src/pyproject.toml").touch()
    assert found(job / "src/deep", home)[0] == "/job/.venv/bin/python"


def test_nearest_environment_comes_first(job: Path, home: Path) -> None:
    (job / ".git").mkdir()
    make(job / ".venv")
    make(job / "src/venv")
    assert found(job / "src/deep", home)[0] == "/job/src/venv/bin/python"


def test_home_folder_is_not_reached_from_below(home: Path) -> None:
    (home / ".git").mkdir()
    make(home / ".venv")
    (home / "job").mkdir()
    assert found(home / "job", home) == (None, "")
    assert found(home, home)[0] == "/home/.venv/bin/python"


def test_folder_that_everybody_can_write_to_is_not_reached(job: Path, home: Path) -> None:
    (job / ".git").mkdir()
    make(job / ".venv")
    job.chmod(0o1777)
    assert found(job / "src", home) == (None, "")
    assert project_folders(job / "src", {}) == [job / "src"]


def test_missing_folder_has_no_project(tmp_path: Path) -> None:
    assert project_folders(tmp_path / "gone", {}) == []


@pytest.mark.parametrize("named", ["../elsewhere", "{root}/elsewhere"])
def test_environment_of_uv_may_be_elsewhere(job: Path, home: Path, named: str) -> None:
    make(job / ".venv")
    make(job.parent / "elsewhere")
    named = named.format(root=job.parent)
    assert found(job, home, UV_PROJECT_ENVIRONMENT=named)[0] == "/job/.venv/bin/python"
    (job / "pyproject.toml").touch()
    python, title = found(job, home, UV_PROJECT_ENVIRONMENT=named)
    assert python is not None
    assert Path(f"{job.parent}{python}").resolve() == Path(sys.executable).resolve()
    assert "UV_PROJECT_ENVIRONMENT" in title


# Names that Poetry 2.5 and Pipenv 2026.10 gave to environments of these folders.
POETRY = ("/tmp/h1/pjob", "my-job-wKrDl8rH-py3.11")  # noqa: S108 - the path is a part of the example
PIPENV = ("/tmp/h1/pipjob/Pipfile", "pipjob-dy6e5T9N")  # noqa: S108


@pytest.mark.parametrize(("path", "name"), [POETRY, PIPENV, ("/home/user/MY_PROJECT/Pipfile", "my-project-wyUfYPqE")])
def test_names_of_poetry_and_pipenv_contain_the_hash(path: str, name: str) -> None:
    from kdoctor.probes.project import _hash

    assert _hash(path) in name.replace("-py3.11", "")


def poetry(job: Path, root: Path, *minors: str) -> list[Path]:
    from kdoctor.probes.project import _hash

    (job / "pyproject.toml").write_text("[tool.poetry]\npackage-mode = false\n")
    made = [make(root / f"my-job-{_hash(str(job))}-py{minor}") for minor in minors]
    for number, path in enumerate(made):
        os.utime(path, (number, number))
    make(root / "my-job-AAAAAAAA-py3.13")
    return made


@cases(
    (".cache/pypoetry/virtualenvs", {}),
    ("cache/pypoetry/virtualenvs", {"XDG_CACHE_HOME": "{home}/cache"}),
    ("poetry/virtualenvs", {"POETRY_CACHE_DIR": "{home}/poetry"}),
    ("named", {"POETRY_VIRTUALENVS_PATH": "{home}/named"}),
)
@pytest.mark.skipif(sys.platform != "linux", reason="other default folders")
def test_environment_of_poetry_is_found(
    job: Path, home: Path, monkeypatch: pytest.MonkeyPatch, place: str, environ: dict[str, str]
) -> None:
    monkeypatch.setenv("HOME", str(home))
    (made,) = poetry(job, home / place, "3.11")
    variables = {name: value.replace("{home}", str(home)) for name, value in environ.items()}
    python, title = found(job, home, **variables)
    assert python == str(made / "bin/python").removeprefix(str(home.parent))
    assert title == "Poetry's environment of the project /job"


@pytest.mark.parametrize("file", ["poetry.toml", "../home/config/config.toml"])
def test_settings_of_poetry_name_its_folder(job: Path, home: Path, file: str) -> None:
    (home / "config").mkdir()
    (job / file).write_text(f'cache-dir = "/x"\n[virtualenvs]\nin-project = false\npath = "{home}/envs"\n')
    (made,) = poetry(job, home / "envs", "3.11")
    result = find_project_environment(job, {"HOME": str(home), "POETRY_CONFIG_DIR": str(home / "config")})
    assert result is not None
    assert result.folder == made


def test_activated_environment_of_poetry_precedes_the_newest(job: Path, home: Path) -> None:
    older, newer = poetry(job, home / "envs", "3.11", "3.12")
    environ = {"HOME": str(home), "POETRY_VIRTUALENVS_PATH": str(home / "envs")}
    result = find_project_environment(job, environ)
    assert result is not None
    assert result.folder == newer
    base = older.name.removesuffix("-py3.11")
    (home / "envs/envs.toml").write_text(
        f'[x-AAAAAAAA]\nminor = "3.13"\n\n[{base}]\nminor = "3.11"\npatch = "3.11.7"\n'
    )
    result = find_project_environment(job, environ)
    assert result is not None
    assert result.folder == older


def test_environment_of_pipenv_is_found(job: Path, home: Path) -> None:
    from kdoctor.probes.project import _hash

    (job / "Pipfile").touch()
    made = make(home / f"job-{_hash(str(job / 'Pipfile'))}")
    result = find_project_environment(job, {"HOME": str(home), "WORKON_HOME": str(home)})
    assert result is not None
    assert result.folder == made


@pytest.mark.parametrize(
    "text", ["name: job\n", 'name: "job"  # ours\n', "channels:\n  - x\nname: 'job'\ndependencies: []\n"]
)
@cases(
    ("conda/envs/job", {"CONDA_EXE": "{home}/conda/bin/conda"}),
    ("mamba/envs/job", {"MAMBA_ROOT_PREFIX": "{home}/mamba"}),
    ("here/job", {"CONDA_ENVS_PATH": "/nowhere:{home}/here"}),
    ("listed/job", {}),
)
def test_named_environment_of_conda_is_found(
    job: Path, home: Path, text: str, place: str, environ: dict[str, str]
) -> None:
    (job / "environment.yml").write_text(text)
    made = make(home / place, "conda-meta")
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"/opt/conda\n{home}/listed/job\n")
    variables = {name: value.replace("{home}", str(home)) for name, value in environ.items()}
    python, title = found(job, home, **variables)
    assert python == str(made / "bin/python").removeprefix(str(home.parent))
    assert title == "conda environment of /job/environment.yml"


@pytest.mark.parametrize("name", ["../evil", "/evil", "..", "", "base env: [x]"])
def test_name_of_a_conda_environment_is_not_a_path(job: Path, home: Path, name: str) -> None:
    make(home / "conda/evil", "conda-meta")
    (job / "environment.yml").write_text(f"name: {name}\n")
    assert found(job, home, CONDA_EXE=str(home / "conda/bin/conda")) == (None, "")


def test_prefix_of_a_conda_environment_is_found(job: Path, home: Path) -> None:
    (job / "environment.yaml").write_text(f"dependencies: []\nprefix: {make(home / 'here', 'conda-meta')}\n")
    assert found(job, home)[0] == "/home/here/bin/python"


def test_what_is_no_environment_is_skipped(job: Path, home: Path) -> None:
    (job / ".venv").write_text("name-of-an-environment\n")
    (job / "venv/bin").mkdir(parents=True)
    (job / "venv/bin/python").symlink_to(sys.executable)
    os.mkfifo(job / "env")
    (job / "environment.yml").mkdir()
    os.mkfifo(job / "environment.yaml")
    (job / "pyproject.toml").write_bytes(b"\xff\x00")
    (job / "poetry.toml").write_bytes(b'\xff\x00[virtualenvs]\npath="\x00"')
    assert found(job, home, UV_PROJECT_ENVIRONMENT="\0") == (None, "")


@pytest.mark.parametrize("link", ["gone", ".venv"])
def test_broken_link_is_a_problem(job: Path, home: Path, link: str) -> None:
    (job / ".venv").symlink_to(link)
    assert problem(job, home) == f"{job / '.venv'} is a broken link to {link}"


def test_environment_without_python_is_a_problem(job: Path, home: Path) -> None:
    (job / ".venv").mkdir()
    (job / ".venv/pyvenv.cfg").touch()
    assert problem(job, home) == f"{job / '.venv'} has no Python"
    (job / ".venv/bin").mkdir()
    (job / ".venv/bin/python").symlink_to("/usr/bin/python3.99")
    assert problem(job, home) == f"{job / '.venv/bin/python'} is a broken link to /usr/bin/python3.99"


def test_usable_environment_precedes_a_broken_one(job: Path, home: Path) -> None:
    (job / ".venv").symlink_to("gone")
    make(job / "venv")
    assert found(job, home)[0] == "/job/venv/bin/python"


def test_environment_of_another_user_is_a_problem(job: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(job / ".venv")
    owner = (job / ".venv").stat().st_uid
    if os.geteuid() == 0:
        os.lchown(job / ".venv", 12345, -1)
        owner = 12345
    else:
        monkeypatch.setattr("kdoctor.probes.project._user", lambda: 12345)
    assert problem(job, home).startswith(f"{job / '.venv'} belongs to another user (id {owner})")


def test_unreadable_environment_is_a_problem(job: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(folder))

    make(job / ".venv")
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert problem(job, home) == f"{job / '.venv'} cannot be read"


def test_texts_have_no_control_characters(job: Path, home: Path) -> None:
    folder = job / "e\033[31mvil\a"
    folder.mkdir()
    (folder / ".venv").symlink_to("\033]0;gone\a")
    result = find_project_environment(folder, {"HOME": str(home)})
    assert result is not None
    assert result.title.isprintable()
    assert result.problem.isprintable()
