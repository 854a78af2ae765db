"""The page of the version matrix."""

from kdoctor.catalog.load import Catalog
from kdoctor.matrix.compatibility import needed_driver
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.view import asks, code_range, nccl_text, python_range

_MATRIX = """\
# The version matrix

`kdoctor matrix` lists the TensorFlow releases that are compatible with a driver, GPUs and a Python version, explains
why the others are not, and prints the install command for the newest. `kdoctor matrix --tensorflow 2.19` lists what a
release needs; `--framework jax` judges JAX, and so does `KERAS_BACKEND=jax`. `--platform`, `--glibc` (a version or
`musl`), `--cuda` and `--cudnn` describe another platform and libraries of the system, and `--all` lists every release
with all reasons. The command does not import TensorFlow and needs no GPU. Exit codes: 0 on success, whatever the
answer; 2 on usage errors.

`--gpu` accepts what `nvidia-smi` prints, also for virtual GPUs and MIG instances (`GRID A100D-40C`), what people type
(`rtx3090ti`, `8xA100`), compute capabilities (`8.6`, `sm_90a`), and `none` for the CPU. Repeat it for several models.
A name that fits several capabilities is refused with all of them, and so are GPUs of other makers.

`--cuda` and `--cudnn` judge the libraries of the system in place of the NVIDIA wheels. TensorFlow loads the major
release of CUDA that it was built with, and no cuDNN that is older than its build's. If no release fits them, the answer
names the release to install with the NVIDIA wheels. For JAX, the command has the extra `cuda12-local` or
`cuda13-local`.

*runs* means that the matrix has no known problem for the combination. Missing facts give *unknown*: a GPU that is not
in the matrix, an unknown driver, another platform. Releases without a row are not guessed.

A GPU runs machine code of its major architecture. Otherwise the driver compiles PTX, and must know that version of
PTX; minor-version compatibility does not cover PTX. TensorFlow has two kinds of kernels: compiled ones, and those of
its kernel generator, which often lack machine code for the newest GPU of their time. A GPU needs code of both kinds.
So H100 and H200 need driver 545 from TensorFlow 2.17, and 555 from 2.19. With several GPUs, all of them must run the
release. The install command includes pins that prevent ranges from resolving to a known-bad combination, and a line for
`LD_LIBRARY_PATH` where a release does not search all folders of the NVIDIA wheels.

## Add a release

`kdoctor matrix add --wheel FILE` or `--wheel tensorflow==2.21.0` reads a wheel and prints its row: metadata, build
information, search path (RUNPATH), and the GPU code with its versions of PTX. The output is a file for `--matrix`, and
its row fits into the shipped matrix. A wheel is for one Python version, so extend `python` by hand. Damaged wheels,
source archives, CPU builds and wheels of other software are refused. `make test-wheels` reads the wheels of all shipped
rows again, and `make test-matrix` resolves each printed command with pip for each Python.

A matrix that was last reviewed more than 90 days ago says so in every answer.

## Custom matrices

`--matrix FILE` or the variable `KDOCTOR_MATRIX` names a file in the format of the shipped matrix
(`checklists/kdoctor_checklists/matrices/version-matrix.yaml`). With `extends: shipped`, rows are added to the shipped
matrix, and a row with the same key replaces the shipped row completely. With `extends: nothing`, the default, the file
replaces the shipped matrix and needs every section. Keys: `tensorflow` by `version`, `cuda_majors` by `major`,
`cuda_releases` by `release`, `earlier` by `tensorflow`, `ptx_versions` by `isa`, `cudnn` by `cuda`, `versions` and
`capabilities`, `gpus` by `capability`, `platforms` by `platform` and `framework`, `forward_compatibility` by `cuda`,
`libraries` by `cuda`, `cudnn` and `nccl`, `jax` by `version` and `extra`, `keras` by `versions`, `features` by
`feature`, `keras_releases` by `package` and `release`, `keras_features` by `feature`, `package` and `releases`,
`known_bad` by `id` and `when`. The models of a row of `gpus` are added to those of the shipped row. Of two files, the
newer `updated` counts. Quote versions, because they are strings. [What distributed Keras does](keras-truth.md) shows
the rows about features of jobs.

    schema: kdoctor/version-matrix/v1
    extends: shipped
    updated: "2026-12-01"
    platform: linux-x86_64
    tensorflow:
    - version: "2.21.0+ours.1"
      same_as: "2.21.0"          # provides every key that is missing here
      cubins: [80, 90, 100]      # without kernel_gen, this describes all its GPU code
      ptx: [100]
      source: our build farm
    gpus:
    - capability: "12.0"         # one model more
      models: [RTX PRO 9999]
      source: our lab
    platforms:
    - platform: linux-riscv64
      wheels: "<0"               # the releases with a wheel for it
      advice: ["Build from source"]
      source: our lab

## Releases
"""


def matrix_page(_: Catalog) -> str:
    """The version matrix: how to use it, and its releases."""
    matrix = load_matrix(environ={})
    lines = [_MATRIX, f"Updated {matrix.updated}, for {matrix.platform}.", ""]
    heads = (
        "TensorFlow",
        "Python",
        "CUDA",
        "cuDNN",
        "oldest driver",
        "for A100",
        "for H100",
        "machine code",
        "PTX",
        "NCCL",
        "glibc",
        "requires",
    )
    lines += [f"| {' | '.join(heads)} | compared with the wheel |", "|" + "---|" * (len(heads) + 1)]
    for row in reversed(matrix.releases):
        wants = ", ".join(f"`{line}`" for line in asks(row, ["keras", "numpy"]))
        driver = matrix.oldest_driver(row.cuda) or ""
        gpus = [needed_driver(matrix, row, [find_gpu(matrix, name)]) or "" for name in ("A100", "H100")]
        cells = (row.version, python_range(row), row.cuda, row.cudnn or "", driver, *gpus, code_range(row))
        ptx = "; ".join(f"{', '.join(each.ptx)} (PTX {each.ptx_isa})" for each in row.kernels)
        rest = (ptx, nccl_text(row), row.glibc, wants, row.verified or "")
        lines.append(f"| {' | '.join((*cells, *rest))} |")
    lines += [*_platforms(matrix), *_jax(matrix), *_gpus(matrix), "", "## Known-bad combinations", ""]
    lines += ["| failure | when | effect | fixed in | fix |", "|---|---|---|---|---|"]
    for bad in matrix.known_bad:
        when = ", ".join(f"{name} `{spec}`" for name, spec in bad.when.items()) + (f"; {bad.job}" if bad.job else "")
        ended = ", ".join(f"{name} `{spec}`" for name, spec in bad.ended_by.items()) or "unknown"
        lines.append(f"| {bad.id} | {when} | {bad.effect} | {ended} | {bad.fix} |")
    return "\n".join(lines) + "\n"


def _platforms(matrix: VersionMatrix) -> list[str]:
    lines = [
        "",
        "## Platforms",
        "",
        "`--platform` judges another platform. The frameworks use NVIDIA GPUs as follows.",
        "",
    ]
    lines += ["| platform | framework | releases that use a GPU | what else |", "|---|---|---|---|"]
    lines += [f"| {matrix.platform} | both | all | |"]
    for row in matrix.platforms:
        gpu = f"`{row.gpu}`" if row.gpu else "none: CPU builds"
        lines.append(f"| {row.platform} | {row.framework} | {gpu} | {' '.join(f'{line}.' for line in row.advice)} |")
    return lines


def _jax(matrix: VersionMatrix) -> list[str]:
    known = matrix.of("jax")
    lines = ["", "## JAX", "", "`kdoctor matrix --framework jax` judges JAX with its CUDA plugins.", ""]
    lines += ["| JAX | extra | Python | oldest driver | machine code | PTX |", "|---|---|---|---|---|---|"]
    for row in reversed(known.releases):
        ptx = f"{', '.join(row.ptx)} (PTX {row.ptx_isa})"
        driver = known.oldest_driver(row.cuda)
        lines.append(f"| {row.version} | {row.extra} | {python_range(row)} | {driver} | {code_range(row)} | {ptx} |")
    return lines


def _gpus(matrix: VersionMatrix) -> list[str]:
    lines = [
        "",
        "## GPUs",
        "",
        "`--gpu` accepts these models, as the driver prints them, and any compute capability.",
        "",
    ]
    lines += ["| capability | architecture | models | oldest driver | last branch |", "|---|---|---|---|---|"]
    for row in reversed(matrix.gpus):
        names = ", ".join(row.names).replace("[", "\\[")
        oldest, last = row.oldest_driver or "", row.last_branch or ""
        lines.append(f"| {row.capability} | {row.architecture} | {names} | {oldest} | {last} |")
    sources = ["", "Sources:", ""]
    return [*lines, *sources, *(f"- {matrix.sources[name]}" for name in ("cuda-gpus", "pci-ids", "ptx-isa"))]
