"""Fuzz targets that are folders and binary files: copies of /sys and /proc, archives, libraries and wheels."""

import contextlib
import io
import json
import os
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

from helpers.fuzzing.dumps import DUMPS
from helpers.fuzzing.mutation import mutated, mutated_json
from helpers.fuzzing.using import TODAY, Reader, shipped, use
from helpers.kdoctor_fleet.rdma import write_device, write_interface
from helpers.machine import context
from helpers.trees import Slot, Tree
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.matrix import machine
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.wheels.fatbins import read_images
from kdoctor.matrix.wheels.row import document
from kdoctor.matrix.wheels.wheel import read_wheel
from kdoctor.probes import host, kernel, kernel_log, node, pci
from kdoctor.probes.container import container, container_image
from kdoctor.probes.project import find_project_environment
from kdoctor_fleet.probes import network
from kdoctor_recordings.importer import import_files
from kdoctor_target.inspect import elf, environment, loader, provenance

Files = dict[str, str]
"""Path to text; a link is its target after ``->``."""
LINK = "-> "


def packed(folder: Path) -> bytes:
    """The files of a folder as JSON."""
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = LINK + os.path.relpath(path.resolve(), path.parent)
        elif path.is_file():
            found[name] = path.read_bytes().decode("latin-1")
    return json.dumps(found).encode()


@contextlib.contextmanager
def unpacked(data: bytes, folder: Path) -> Iterator[Path]:
    """The files in a folder; nothing leads out of it."""
    try:
        files = json.loads(data)
    except (ValueError, RecursionError):
        files = {}
    root = folder / "tree"
    root.mkdir()
    try:
        for name, text in files.items() if isinstance(files, dict) else ():
            parts = [part for part in name.split("/") if part not in ("", ".", "..")]
            with contextlib.suppress(OSError, ValueError):
                _put(root.joinpath(*parts), text)
        yield root
    finally:
        shutil.rmtree(root)


def _put(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, str) and text.startswith(LINK):
        path.symlink_to(text.removeprefix(LINK))
    else:
        shown = text if isinstance(text, str) else json.dumps(text)
        path.write_bytes(shown.encode("utf-8", "surrogatepass"))


def _made(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        return packed(Path(folder))


@cache
def _trees() -> Sequence[bytes]:
    slots = (Slot(path="15:01.0/16:00.0/17:00.0/19:00.0"), Slot(path="15:01.0/16:00.0/17:01.0/1a:00.0"))
    return [_made(Tree(slots=slots, cpus=2, sockets=2, config_bytes=64).write)]


@cache
def _fabrics() -> Sequence[bytes]:
    def write(root: Path) -> None:
        write_device(
            root, "mlx5_0", "0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0", ports__1__rate="40 Gb/sec (4X)"
        )
        write_device(root, "mlx5_10", "0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0", ports__1__state="1: DOWN")
        write_interface(root, "eth0")

    return [_made(write)]


def _tree(data: bytes, folder: Path) -> None:
    with unpacked(data, folder) as root:
        where = context(root, {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURMD_NODENAME": "n1"})
        facts: dict[type[FactGroup], FactGroup | Unavailable] = {}
        for probe in (pci, kernel, kernel_log, host, network, node):
            facts.update(probe.collect(where))
        container(root, {})
        machine._driver(None, root)
        machine._own_gpus(shipped().rules.matrix or load_matrix(), {}, root, other=False)
        container_image(root, {})
        if zlib.crc32(data) % 50 == 0:  # judging takes longer than reading
            use(facts)


def _fabric(data: bytes, folder: Path) -> None:
    with unpacked(data, folder) as root:
        network.collect(context(root))


PROJECT = {
    "environment.yml": "name: job\nprefix: envs/job\n", "poetry.toml": '[virtualenvs]\nin-project = true\npath = "envs"\n',
    "pyproject.toml": "[project]\nname = 'x'\n", "uv.lock": "version = 1\n", "Pipfile": "[packages]\n",
    ".venv/pyvenv.cfg": "home = /usr\n", ".venv/bin/python": "", "venv/pyvenv.cfg": "", "envs/job/conda-meta/history": "",
}  # fmt: skip


def _project(data: bytes, folder: Path) -> None:
    with unpacked(data, folder) as root:
        find_project_environment(root, {"HOME": str(folder), "CONDA_ENVS_PATH": str(root / "envs")})


PACKAGE = {
    "tensorflow/python/platform/build_info.py": "build_info = {'cuda_version': '12.5.1', 'cudnn_version': '9', "
    "'is_cuda_build': True, 'cuda_compute_capabilities': ['sm_60', 'compute_90']}\n",
    "tensorflow/include/third_party/gpus/cuda/cuda_config.h": '#define TF_CUDA_VERSION "12.5.1"\n'
    '#define TF_CUDA_TOOLKIT_PATH "/usr/local/cuda"\n',
    "METADATA": "Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.19.0\nRequires-Dist: numpy<2.2,>=1.26\n"
    'Provides-Extra: and-cuda\nRequires-Dist: nvidia-cublas-cu12==12.5.3.2; extra == "and-cuda"\nSummary: a\n b\n\ntext\n',
    "nvidia_cublas_cu12-12.5.3.2.dist-info/RECORD": "nvidia/cublas/lib/libcublas.so.12,sha256=x,1\n",
    "keras.json": '{"backend": "tensorflow", "floatx": "float32", "epsilon": 1e-07}',
}  # fmt: skip


def _package(data: bytes, folder: Path) -> None:
    with unpacked(data, folder) as root:
        environment.read_build(str(root / "tensorflow"))
        environment.read_cuda_config(str(root / "tensorflow"))
        provenance._owned_files.__wrapped__(str(root))
        environment.read_keras([], None, {"KERAS_HOME": str(root), "HOME": str(root)})
        if (root / "METADATA").is_file():
            environment.read_headers((root / "METADATA").read_text("utf-8", "replace"))


def _json_of(files: Mapping[str, str]) -> Sequence[bytes]:
    return [json.dumps(files).encode()]


def _tar(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


MEMBERS = {
    f"sosreport-x/sos_commands/{name}": DUMPS[kind].encode()
    for name, kind in {
        "nvidia/nvidia-smi_-q": "nvidia-smi -q", "kernel/dmesg": "kernel log", "pci/lspci_-vvv": "lspci -vvv", "dcgm/dcgmi_diag.json": "dcgmi diag",
    }.items()
}  # fmt: skip
REPORT = "\n".join(
    f"{'_' * 44}\n\n{command}\n\n{DUMPS[kind]}"
    for command, kind in (
        ("/usr/bin/nvidia-smi --query", "nvidia-smi -q"), ("/usr/bin/lspci -d 10de:* -vvxxx", "lspci -vvv"),
        ("*** /proc/driver/nvidia/version", "/proc/driver/nvidia/version"), ("/bin/dmesg:", "kernel log"),
    )
)  # fmt: skip


def _repacked(data: bytes, random: Random) -> bytes:
    """The archive with one changed member, or with changed bytes."""
    if random.random() < 0.3:
        return mutated(data, random)
    name = random.choice(list(MEMBERS))
    members = {**MEMBERS, name: mutated(MEMBERS[name], random)}
    if random.random() < 0.2:
        members[random.choice(("../x/dmesg", "/etc/dmesg", "a/" * 300 + "dmesg", "nvidia-smi\n.txt"))] = b"x"
    return _tar(members, random.choice(("w", "w:gz", "w:bz2", "w:xz")))


def _archive(data: bytes, folder: Path) -> None:
    path = folder / "archive"
    path.write_bytes(data)
    import_files([path])


@cache
def _library() -> Sequence[bytes]:
    """A library of the standard library, if it has any as a file, and a fatbin."""
    path = Path(zlib.__file__) if getattr(zlib, "__file__", None) else Path(os.sys.executable)  # type: ignore[attr-defined]
    small = path.read_bytes()[:200_000]
    image = struct.pack("<HHIQIIHHIIIQ", 1, 0, 64, 32, 0, 0, 8, 7, 90, 0, 0, 0) + b".version 8.7\n.target sm_90a\n"
    fatbin = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(image) + 6) + image + bytes(6)
    return [small + fatbin, small, b"ld.so-1.7.0\0" + bytes(40)]


def _read_library(data: bytes, folder: Path) -> None:
    path = folder / "library.so"
    path.write_bytes(data)
    with contextlib.suppress(elf.ElfError, OSError):
        elf.read_library(str(path))
    with contextlib.suppress(elf.ElfError, elf.OtherMachineError, OSError):
        elf.verify(str(path), elf.own_header())
    with contextlib.suppress(elf.ElfError, OSError, ValueError):
        list(read_images(path))
    loader.read_cache(str(path))


def _zip(files: Mapping[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


WHEEL = {
    **{name: text for name, text in PACKAGE.items() if name.startswith("tensorflow/")},
    "tensorflow-2.19.0.dist-info/METADATA": PACKAGE["METADATA"],
    "tensorflow-2.19.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: cp312-cp312-manylinux_2_17_x86_64\n",
}  # fmt: skip


def _rezipped(data: bytes, random: Random) -> bytes:
    """The wheel with one changed member, or with changed bytes."""
    if random.random() < 0.3:
        return mutated(data, random)
    name = random.choice(list(WHEEL))
    return _zip({**WHEEL, name: mutated(WHEEL[name].encode(), random).decode("utf-8", "replace")})


def _wheel(data: bytes, folder: Path) -> None:
    path = folder / "tensorflow-2.19.0-cp312-cp312-manylinux_2_17_x86_64.whl"
    path.write_bytes(data)
    facts = read_wheel(path)
    if facts.images:
        document(facts, TODAY)


UNPACKS = hasattr(tarfile, "data_filter")
"""Whether this Python can unpack archives safely. That of Debian 12 cannot."""
MACHINES: Mapping[str, Reader] = {
    "/sys, /proc and /dev": Reader(seeds=_trees, run=_tree, mutate=mutated_json),
    "InfiniBand in /sys": Reader(seeds=_fabrics, run=_fabric, mutate=mutated_json),
    "project folder": Reader(seeds=lambda: _json_of(PROJECT), run=_project, mutate=mutated_json),
    "installed package": Reader(seeds=lambda: _json_of(PACKAGE), run=_package, mutate=mutated_json),
    **({"sosreport": Reader(seeds=lambda: [_tar(MEMBERS)], run=_archive, mutate=_repacked)} if UNPACKS else {}),
    "nvidia-bug-report": Reader(seeds=lambda: [REPORT.encode()], run=_archive),
    "shared library": Reader(seeds=_library, run=_read_library),
    "wheel": Reader(seeds=lambda: [_zip(WHEEL)], run=_wheel, mutate=_rezipped),
}
"""Readers of folders and binary files."""
