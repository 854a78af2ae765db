"""Finds the Python environment of the project in a folder, from files only. Nothing is run or imported."""

import base64
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from kdoctor.inputs import expanded
from kdoctor.records import record
from kdoctor.text.sanitize import clean

PYTHONS = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe", "python")
"""Interpreters below the folder of an environment."""

_ENDS = (".git", ".hg", "uv.lock", "poetry.lock", "Pipfile.lock", "pixi.lock")
"""A folder with one of these is the root of the project: no tool's project reaches beyond it."""
_MARKERS = (
    *_ENDS, "pyproject.toml", "Pipfile", "pixi.toml", "environment.yml", "environment.yaml", "setup.py", "setup.cfg",
    "requirements.txt",
)  # fmt: skip
_MOST_BYTES = 1_000_000
"""Larger project files are not read."""
_POETRY_PATH = re.compile(r'^\[virtualenvs\](?:\n(?!\[).*)*?\npath\s*=\s*"([^"\n]+)"', re.MULTILINE)
_CONDA_KEY = re.compile(r"^(name|prefix):[ \t]*['\"]?([^'\"#\n]+?)['\"]?[ \t]*(?:#.*)?$", re.MULTILINE)


@record
class ProjectEnvironment:
    """An environment that belongs to a project."""

    folder: Path
    title: str
    """What it is, for the user: ``.venv of the project /opt/job``."""
    python: str | None
    """Its interpreter; None if it cannot be used."""
    problem: str = ""
    """Why it cannot be used."""


def find_project_environment(start: Path, environ: Mapping[str, str]) -> ProjectEnvironment | None:
    """The environment of the project that a folder is in.

    The nearest folder comes first. One that can be used comes before those that cannot.
    """
    unusable: ProjectEnvironment | None = None
    for folder in project_folders(start, environ):
        for path, title in _candidates(folder, environ):
            found = _inspect(path, title)
            if found and found.python:
                return found
            unusable = unusable or found
    return unusable


def project_folders(start: Path, environ: Mapping[str, str]) -> list[Path]:
    """The folder and its parents up to the root of the project; without a project, the folder alone.

    The search does not reach the home folder from below, nor a folder of another owner or that everybody can write to,
    such as /tmp.
    """
    try:
        owner = start.stat().st_uid
    except OSError:
        return []
    home = environ.get("HOME")
    chain = [start]
    for folder in start.parents:
        if home and folder == Path(home):
            break
        try:
            found = folder.stat()
        except OSError:
            break
        if found.st_uid not in {owner, _user()} or found.st_mode & stat.S_IWOTH or folder == folder.parent:
            break
        chain.append(folder)
    for names in (_ENDS, _MARKERS):
        ends = (number for number, folder in enumerate(chain, 1) if any(_exists(folder / name) for name in names))
        end = next(ends, None)
        if end is not None:
            return chain[:end]
    return [start]


_CREATED_BY = {
    "uv.lock": "uv sync",
    "poetry.lock": "poetry install",
    "Pipfile.lock": "pipenv sync",
    "pixi.lock": "pixi install",
    "environment.yml": "conda env create --file environment.yml",
}


def how_to_create(start: Path, environ: Mapping[str, str]) -> str:
    """The command that makes the environment of the project that a folder is in; empty if no file tells."""
    folders = project_folders(start, environ)
    found = (
        f"{name} in {folder}: {make}"
        for folder in folders
        for name, make in _CREATED_BY.items()
        if _exists(folder / name)
    )
    return next(found, "")


def _candidates(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    project = f"of the project {folder}"
    named = environ.get("UV_PROJECT_ENVIRONMENT")
    if named and (_exists(folder / "uv.lock") or _exists(folder / "pyproject.toml")):
        yield folder / named, f"uv's environment {project} (UV_PROJECT_ENVIRONMENT)"
    for name in (".venv", "venv", ".pixi/envs/default", "env"):
        yield folder / name, f"{name} {project}"
    if _exists(folder / "pyproject.toml"):
        yield from ((path, f"Poetry's environment {project}") for path in _of_poetry(folder, environ))
    if _exists(folder / "Pipfile"):
        yield from ((path, f"Pipenv's environment {project}") for path in _of_pipenv(folder, environ))
    for name in ("environment.yml", "environment.yaml"):
        yield from ((path, f"conda environment of {folder / name}") for path in _of_conda(folder / name, environ))


def _of_poetry(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """Environments of Poetry, named ``name-HASH-py3.11``, the activated one first, then the newest.

    The hash is that of the project's folder (https://python-poetry.org/docs/managing-environments/).
    """
    cache = environ.get("POETRY_CACHE_DIR") or _user_folder("XDG_CACHE_HOME", ".cache", "Caches", environ) + "/pypoetry"
    settings = environ.get("POETRY_CONFIG_DIR") or (
        _user_folder("XDG_CONFIG_HOME", ".config", "Application Support", environ) + "/pypoetry"
    )
    files = (folder / "poetry.toml", Path(settings, "config.toml"))
    paths = [match[1] for match in map(_POETRY_PATH.search, map(_read, files)) if match]
    place = environ.get("POETRY_VIRTUALENVS_PATH") or next(iter(paths), "{cache-dir}/virtualenvs")
    root = expanded(place.replace("{cache-dir}", cache).replace("{project-dir}", str(folder)))
    key = _hash(os.path.normcase(os.path.realpath(folder)))
    pattern = rf"^\[[^\]\n]*-{re.escape(key)}\]\n(?:(?!\[).*\n)*?minor\s*=\s*\"([\d.]+)\""
    activated = re.search(pattern, _read(root / "envs.toml"), re.MULTILINE)
    last = f"-py{activated[1]}" if activated else ""
    return _newest(root, f"*-{key}-py*", last)


def _of_pipenv(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """Environments of Pipenv, named ``name-HASH``; the hash is that of the Pipfile's path."""
    root = environ.get("WORKON_HOME") or f"{environ.get('XDG_DATA_HOME') or '~/.local/share'}/virtualenvs"
    return _newest(expanded(root), f"*-{_hash(str(folder / 'Pipfile'))}*", "")


def _of_conda(file: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """The environments that an ``environment.yml`` names, in the folders that conda and mamba use."""
    named = dict(_CONDA_KEY.findall(_read(file)))
    if "prefix" in named:
        yield Path(named["prefix"])
    name = named.get("name")
    if not name or name in {".", ".."} or "/" in name or "\\" in name:
        return
    roots = [
        entry for key in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS") for entry in environ.get(key, "").split(os.pathsep)
    ]
    if environ.get("CONDA_EXE"):
        roots.append(str(Path(environ["CONDA_EXE"]).parent.parent / "envs"))
    if environ.get("MAMBA_ROOT_PREFIX"):
        roots.append(f"{environ['MAMBA_ROOT_PREFIX']}/envs")
    yield from (Path(root, name) for root in roots if root)
    home = expanded(environ.get("HOME") or "~")
    recorded = _read(home / ".conda/environments.txt").splitlines()
    yield from (Path(line.strip()) for line in recorded if Path(line.strip()).name == name)


def _inspect(folder: Path, title: str) -> ProjectEnvironment | None:
    """The environment in a folder; None if there is none."""
    python, problem = None, ""
    try:
        if folder.is_symlink() and not folder.exists():
            problem = f"{folder} is a broken link to {folder.readlink()}"
        elif not {"pyvenv.cfg", "conda-meta"}.intersection(entry.name for entry in folder.iterdir()):
            return None
        elif (owner := folder.lstat().st_uid) not in {0, _user()}:
            problem = f"{folder} belongs to another user (id {owner}) and is used only if --python names it"
        else:
            python = environment_python(folder)
            problem = "" if python else missing_python(folder) or f"{folder} has no Python"
    except PermissionError:
        problem = f"{folder} cannot be read"
    except (OSError, ValueError):
        return None
    return ProjectEnvironment(folder=folder, title=clean(title), python=python, problem=clean(problem))


def missing_python(folder: Path) -> str:
    """The link to the Python that the environment was made with, if that is gone; empty if there is no link."""
    link = next((folder / name for name in PYTHONS if (folder / name).is_symlink()), None)
    return f"{link} is a broken link to {os.path.realpath(link)}" if link else ""


def environment_python(folder: Path) -> str | None:
    """The interpreter in an environment's folder. Links are not followed."""
    return next((str((folder / name).absolute()) for name in PYTHONS if (folder / name).is_file()), None)


def _newest(root: Path, pattern: str, last: str) -> list[Path]:
    """The folders that match, those with the given end first, then by time."""
    try:
        found = {path: path.stat().st_mtime for path in root.glob(pattern)}
    except OSError:
        return []
    return sorted(found, key=lambda path: (bool(last) and path.name.endswith(last), found[path]), reverse=True)


def _hash(text: str) -> str:
    """The eight characters that Poetry and Pipenv put into names."""
    return base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(text)).digest()).decode()[:8]


def _user_folder(variable: str, linux: str, mac: str, environ: Mapping[str, str]) -> str:
    default = f"~/Library/{mac}" if sys.platform == "darwin" else f"~/{linux}"
    return environ.get(variable) or str(expanded(default))


def _read(file: Path) -> str:
    """The text of a small regular file; empty if there is none."""
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _user() -> int:
    """The user's id; 0 on Windows, where folders have no such owner."""
    return os.geteuid() if hasattr(os, "geteuid") else 0
