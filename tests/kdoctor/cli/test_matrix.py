"""``kdoctor matrix`` on the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from helpers.cases import cases
from helpers.command import captured, kdoctor_here
from kdoctor.matrix.load import load_matrix

EXAMPLE = ("--driver", "535.161.08", "--gpu", "A100", "--python", "3.11")
MATRIX = load_matrix(environ={})
H100 = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 93\n"


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return kdoctor_here("matrix", *arguments, COLUMNS="100", **environ)


def answer(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_table_shows_best_release_and_install_command() -> None:
    done = run(*EXAMPLE)
    assert done.returncode == 0
    assert ">  2.21.0" in done.stdout
    assert "    python3.11 -m pip install 'tensorflow[and-cuda]==2.21.0' nvidia-cudnn-cu12==9.24.0.43\n" in done.stdout
    assert "[tf2161_runpath]" in done.stdout
    assert "A100, compute capability 8.0 (--gpu)" in done.stdout


def test_several_gpus_may_be_one_option() -> None:
    assert (
        answer(*EXAMPLE, "--gpu", "H100,L4")["machine"] == answer(*EXAMPLE, "--gpu", "H100", "--gpu", "L4")["machine"]
    )


def test_command_installs_into_the_interpreter_that_was_named() -> None:
    named = run("--platform", "linux-x86_64", "--gpu", "A100", "--driver", "580.95", "--python", sys.executable)
    assert f"    {sys.executable} -m pip install " in named.stdout


@cases(
    ("jax", (), "Newest compatible release: JAX"),
    ("torch", (), "no releases of torch"),
    ("tensorflow", (), "Newest compatible release: TensorFlow"),
    ("jax", ("--framework", "tensorflow"), "Newest compatible release: TensorFlow"),
)
def test_backend_of_keras_decides_the_framework(backend: str, options: tuple[str, ...], shown: str) -> None:
    done = run("--gpu", "A100", "--driver", "580.95.05", "--python", "3.12", *options, KERAS_BACKEND=backend)
    assert shown in done.stdout
    assert ("(KERAS_BACKEND)" in done.stdout) == (backend != "tensorflow" and not options)


def test_json_contains_every_release_and_the_best() -> None:
    read = answer(*EXAMPLE)
    assert read["schema"] == "kdoctor/matrix-answer/v1"
    assert read["best"]["version"] == "2.21.0"
    assert [row["version"] for row in read["releases"]] == [row.version for row in reversed(MATRIX.releases)]
    assert read["machine"]["gpus"] == [{"name": "A100", "capability": "8.0"}]
    outcomes = {row["version"]: row["outcome"] for row in read["releases"]}
    assert outcomes["2.10.1"] == "does-not-run"


def test_markdown_is_a_table() -> None:
    done = run(*EXAMPLE, "-f", "markdown")
    html = MarkdownIt("commonmark").enable("table").render(done.stdout)
    assert html.count("<tr>") == len(MATRIX.releases) + 1
    assert "tensorflow[and-cuda]==2.21.0" in html


def test_tensorflow_option_shows_requirements() -> None:
    done = run("--tensorflow", "2.19")
    assert "TensorFlow 2.19.1" in done.stdout
    assert "525.60.13" in done.stdout
    read = answer("--tensorflow", "2.19")
    assert read["needs"]["version"] == "2.19.1"
    assert read["machine"] is None
    html = run("--tensorflow", "2.19", "-f", "markdown").stdout
    assert html.startswith("#")
    assert "TensorFlow 2.19.1" in html


@cases(("windows", "2.10.1", "452.39"), ("wsl2", "2.21", "527.41"), ("linux-x86_64", "2.21", "525.60.13"))
def test_requirements_name_the_driver_of_the_platform(platform: str, tensorflow: str, driver: str) -> None:
    done = run("--tensorflow", tensorflow, "--platform", platform, "--python", "3.10", "--gpu", "T4")
    assert f"{driver} or newer" in done.stdout
    assert ("glibc" in done.stdout, "NCCL" in done.stdout) == (platform != "windows",) * 2


@cases(("none", False), ("H100", True))
def test_jax_for_a_free_threaded_python_needs_a_gpu_only_where_there_is_one(gpu: str, *, on_gpu: bool) -> None:
    done = run("--gpu", gpu, "--driver", "580.95.05", "--python", "3.13t", "--platform", "linux-x86_64")
    assert ("which uses the GPU" in done.stdout, "(CUDA 13)" in done.stdout, "jax[cuda13]" in done.stdout) == (
        on_gpu,
    ) * 3
    assert "Keras 3 also runs on JAX" in done.stdout


def test_custom_matrix_extends_by_option_and_variable(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        'schema: kdoctor/version-matrix/v1\nextends: shipped\nupdated: "2026-12-01"\nplatform: linux-x86_64\n'
        'tensorflow:\n- {version: "2.22.0", same_as: "2.21.0", source: our own build}\n'
    )
    assert ">  2.22.0" in run(*EXAMPLE, "--matrix", str(own)).stdout
    assert ">  2.22.0" in run(*EXAMPLE, KDOCTOR_MATRIX=str(own)).stdout


def test_matrix_imports_no_framework() -> None:
    code = (
        "import sys\nsys.argv = ['kdoctor', 'matrix', *sys.argv[1:]]\nfrom kdoctor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'pynvml', 'psutil', 'kdoctor.engine.judge'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = captured([sys.executable, "-c", code, *EXAMPLE], check=True, timeout=60)
    assert done.stderr == "[]\n"
