"""Only one module starts processes, so that one call can end all of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import kdoctor

ROOT = Path(kdoctor.__file__).parent
STARTERS = {
    "Popen", "fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "spawnl", "spawnv", "spawnve", "system",
    "create_subprocess_exec", "create_subprocess_shell",
}  # fmt: skip
OWNERS = {"os", "subprocess", "asyncio"}
MODULES = {"subprocess", "multiprocessing", "pty"}


def starts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield node.module or ""
        elif isinstance(node, ast.Attribute) and node.attr in STARTERS and ast.unparse(node.value) in OWNERS:
            yield ast.unparse(node)


def test_processes_are_started_in_one_module() -> None:
    found = {
        str(path.relative_to(ROOT)): sorted(set(starts(ast.parse(path.read_text(encoding="utf-8")))))
        for path in ROOT.rglob("*.py")
    }
    assert {path for path, names in found.items() if names} == {"probes/process/child.py"}


def test_detector_finds_process_starts() -> None:
    code = "import subprocess\nfrom multiprocessing import Process\nimport os\nos.fork()\nos.system('x')"
    assert sorted(starts(ast.parse(code))) == ["multiprocessing", "os.fork", "os.system", "subprocess"]
