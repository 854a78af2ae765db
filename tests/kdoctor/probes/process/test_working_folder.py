"""Code in the working directory is never imported, whatever its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kdoctor
import kdoctor_checks
from kdoctor.probes.process.child import Children
from kdoctor.probes.process.launch import own_program_argv, program_argv

LOADED_FOR_C = {"linecache"} if sys.version_info >= (3, 13) else set()
"""What Python itself imports from there for ``python -c``, before the program starts."""
NAMES = {"yaml", "pydantic", "typer", "rich", "packaging", "psutil", "pynvml", "usercustomize"} | {
    name for name in sys.stdlib_module_names - LOADED_FOR_C if not name.startswith("_")
}


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder with a module of every name that kdoctor and its programs import. Each leaves a file."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'a').write('{name} ')\n")
    return folder


@pytest.mark.parametrize("python_path", [None, os.pathsep, f"{os.pathsep}/nowhere"])
def test_program_in_the_target_imports_nothing_from_the_working_folder(trap: Path, python_path: str | None) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {"PYTHONPATH": python_path} if python_path else {}
    settings = {"deadline_s": 20.0, "executable": sys.executable, "chosen_by": "--python"}
    argv = program_argv(sys.executable, "inspect.environment", settings)
    end = Children().run(argv, env=environ, deadline_s=30.0, cwd=str(trap))
    assert len(end.records) == 4, end.stderr
    assert not (trap.parent / "sprung").exists()


def test_own_program_imports_nothing_from_the_working_folder(trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    argv = own_program_argv("kdoctor_fleet.probes.job_hosts.child", {"deadline_s": 5.0, "tasks": []})
    end = Children().run(argv, env=os.environ, deadline_s=30.0, cwd=str(trap))
    assert end.ok, end.stderr
    assert not (trap.parent / "sprung").exists()


@pytest.mark.parametrize("empty", ["", os.pathsep], ids=["", "empty entry"])
@pytest.mark.parametrize("start", [("-m", "kdoctor"), ("../bin/kdoctor",)])
def test_command_imports_nothing_from_the_working_folder(trap: Path, start: tuple[str, ...], empty: str) -> None:
    for name in _loaded_by_python(trap.parent):
        (trap / f"{name}.py").unlink(missing_ok=True)  # before the program starts
    (trap.parent / "bin").mkdir()
    (trap.parent / "bin/kdoctor").write_text("from kdoctor.__main__ import main\nmain()\n", encoding="utf-8")
    command = [sys.executable, *start, "list"]
    path = empty + os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(command, cwd=trap, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True)
    assert b"smoke.baseline" in done.stdout
    assert not (trap.parent / "sprung").exists()


def test_modules_of_the_job_on_the_path_replace_none_of_kdoctor(tmp_path: Path) -> None:
    """``PYTHONPATH`` is the job's. A plugin on it is found all the same."""
    for name in ("packaging", "pydantic", "typer", "random"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('a module of the job')\n")
    (tmp_path / "my_plugin.py").touch()
    own = [str(Path(str(module.__file__)).parents[1]) for module in (kdoctor, kdoctor_checks)]
    start = f"import sys; sys.path[2:2] = {own}; from kdoctor.__main__ import main; main()"
    command = [sys.executable, "-c", start, "explain", "host.swap", "--plugin", "my_plugin:absent"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path.parent, env=environ, check=False, capture_output=True, text=True)
    assert "my_plugin has no absent" in done.stderr, done.stderr


def _loaded_by_python(folder: Path) -> set[str]:
    """The modules that ``python -m`` itself imports, or tries to import: ``nt`` is Windows' own."""
    (folder / "bare.py").write_text("import sys\nprint(*sys.modules)\n")
    command = [sys.executable, "-m", "bare"]
    names = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    assert "typing" not in names
    return {"nt", *(name.partition(".")[0] for name in names)}
