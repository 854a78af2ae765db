"""Builds the source distribution and the wheel of the last commit; two builds have the same bytes. ``make dist``.

Times, owners and the order of files come from the commit and not from this machine. The versions of the build's tools
come from constraints.txt.
"""

import argparse
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEVELOPMENT = ROOT / ".venv/bin/python"
"""It has what kdoctor depends on, which the manual page is written with."""


def main() -> None:
    """Build into a folder, and print the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--twice", action="store_true", help="build again, and fail if a byte differs")
    options = parser.parse_args()
    commit = _output("git", "rev-parse", "HEAD").decode().strip()
    built = build(commit, options.folder)
    if options.twice:
        with tempfile.TemporaryDirectory() as again:
            differing = [name for name, content in build(commit, Path(again)).items() if built[name] != content]
        if differing:
            raise SystemExit(f"not reproducible: {', '.join(differing)}")
    for name, content in built.items():
        print(f"{sha256(content).hexdigest()}  {name}")


def build(commit: str, folder: Path) -> dict[str, bytes]:
    """Both distributions of a commit, written to a folder and by name."""
    epoch = int(_output("git", "log", "-1", "--format=%ct", commit))
    os.umask(0o022)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        sources, made = Path(temporary, "sources"), Path(temporary, "made")
        with tarfile.open(fileobj=io.BytesIO(_output("git", "archive", commit))) as archive:
            archive.extractall(sources)  # noqa: S202 - our own files
        program = (str(DEVELOPMENT), "-m", "docs.generator", "--man", "build/man/kdoctor.1")
        paths = os.pathsep.join(("doctor", "checks", "checklists"))
        subprocess.run(program, check=True, cwd=sources, env={**os.environ, "PYTHONPATH": paths})
        environ = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PIP_CONSTRAINT": str(sources / "constraints.txt")}
        command = (sys.executable, "-m", "build", "--outdir", str(made), str(sources))
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
        if done.returncode:
            raise SystemExit(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        found = {path.name: path.read_bytes() for path in sorted(made.iterdir())}
    found = {name: normalize(data, epoch) if name.endswith(".tar.gz") else data for name, data in found.items()}
    for name, content in found.items():
        (folder / name).write_bytes(content)
    return found


def normalize(archive: bytes, epoch: int) -> bytes:
    """The same tar archive with equal times, owners and modes, in the order of names."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            made = tarfile.TarInfo(member.name)
            made.type, made.size, made.linkname, made.mtime = member.type, member.size, member.linkname, epoch
            made.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(made, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=epoch)


def _output(*command: str) -> bytes:
    return subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout


if __name__ == "__main__":
    main()
