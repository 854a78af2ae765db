"""A copy of the project without one of its extensions, installed into an environment."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTENSIONS = sorted(path.name.removeprefix("kdoctor_") for path in ROOT.glob("doctor/kdoctor_*"))
EXTENSIONS.remove("target")  # the core's programs for the examined interpreter


def copy_without(extension: str, folder: Path) -> Path:
    """The files that git knows, without the folder of the extension, its tests, and its lines in pyproject.toml."""
    package = f"kdoctor_{extension}"
    gone = tuple(f"{place}/{package}/" for place in ("doctor", "tests", "tests/helpers"))
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    # What Python has compiled is valid in the copy, too, because the times of the files are kept.
    compiled = [os.path.relpath(cache_from_source(str(ROOT / name)), ROOT) for name in known if name.endswith(".py")]
    for name in filter(None, (*known, *compiled)):
        if not name.startswith(gone) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    settings = folder / "pyproject.toml"
    settings.write_text(_without_lines(settings.read_text(encoding="utf-8"), package), encoding="utf-8")
    return folder


def _without_lines(text: str, package: str) -> str:
    """The text without the lines that name a package, and without the contracts that are about it alone."""
    blocks = re.split(r"(?=^\[\[)", text, flags=re.MULTILINE)
    kept = (block for block in blocks if f'source_modules = ["{package}"]' not in block)
    return "".join(line for block in kept for line in block.splitlines(keepends=True) if package not in line)


def install(project: Path, folder: Path) -> Path:
    """An environment with the project, and with the packages of the environment that runs this.

    Returns:
        Its interpreter.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", query], capture_output=True, text=True, check=True).stdout.strip()
    # A path file adds the folder only, so that the editable installation in it stays behind.
    Path(site, "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *options, "--editable", project], check=True)
    return python
