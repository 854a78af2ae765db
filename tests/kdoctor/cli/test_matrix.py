"""``kdoctor matrix`` on the command line."""

import contextlib
import datetime as dt
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from markdown_it import MarkdownIt

from helpers.cases import cases
from helpers.matrices import with_driver
from kdoctor.cli import main
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.machine import Asked, Found, describe
from kdoctor.matrix.render import render
from kdoctor.matrix.view import View

EXAMPLE = ("--driver", "535.161.08", "--gpu", "A100", "--python", "3.11")
MATRIX = load_matrix(environ={})
H100 = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 93\n"


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command in this process. It only reads and prints, and its start takes longer than its work."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("KDOCTOR")}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    status = 0
    with (
        mock.patch.dict(os.environ, {**plain, "COLUMNS": "100", **environ}, clear=True),
        mock.patch.object(sys, "argv", ["kdoctor", "matrix", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    return subprocess.CompletedProcess(arguments, status, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


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
    assert "    python -m pip install 'tensorflow[and-cuda]==2.21.0' nvidia-cudnn-cu12==9.24.0.43\n" in done.stdout
    assert "[tf2161_runpath]" in done.stdout
    assert "A100, compute capability 8.0 (--gpu)" in done.stdout


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


def test_options_accept_every_syntax() -> None:
    read = answer("--gpu=A100", "--driver=535.161.08", "--gpu", "3090", "--python", "3.12")
    assert [gpu["capability"] for gpu in read["machine"]["gpus"]] == ["8.0", "8.6"]


def test_answer_fits_on_one_screen_and_all_lists_every_release() -> None:
    for arguments in (EXAMPLE, ("--driver", "570.26", "--gpu", "GH200", "--python", "3.12"), ("--platform", "macos")):
        short, long = run(*arguments, COLUMNS="80"), run(*arguments, "--all", COLUMNS="80")
        assert len(short.stdout.splitlines()) <= 40, arguments
        assert all(f" {release.version} " in long.stdout for release in MATRIX.releases)


@pytest.mark.parametrize("platform", ["linux-x86_64", "linux-aarch64", "windows", "wsl2", "macos"])
@pytest.mark.parametrize("python", ["3.10", "3.14"])
def test_command_is_never_empty(platform: str, python: str) -> None:
    done = run("--platform", platform, "--gpu", "A100", "--driver", "580.95", "--python", python)
    assert done.returncode == 0
    for line in done.stdout.splitlines():
        assert not line.rstrip().endswith("pip install"), done.stdout
    assert " -m pip install " in done.stdout


def test_old_driver_has_a_way_out() -> None:
    done = run("--driver", "535.161.08", "--gpu", "H100", "--python", "3.11")
    assert "555.42.02" in done.stdout
    assert "    sudo apt-get install cuda-compat-12-5\n" in done.stdout
    assert ">  2.16.2" in done.stdout


def test_framework_jax_lists_its_plugins() -> None:
    read = answer("--framework", "jax", "--driver", "535.161.08", "--gpu", "H100", "--python", "3.12")
    assert read["best"]["install"]["command"] == "python -m pip install 'jax[cuda12]==0.12.0.1'"
    assert {row["distribution"] for row in read["releases"]} == {"jax"}


def test_json_has_the_code_of_both_kinds_and_all_commands() -> None:
    read = answer("--driver", "580.95.05", "--gpu", "H100", "--python", "3.11")
    best = read["best"]
    assert best["kernel_gen"] == {"cubins": [60, 70, 80, 89], "ptx": ["90"], "ptx_isa": "8.5"}
    assert best["oldest_driver"] == "555.42.02"
    assert len(best["install"]["commands"]) == 2


@pytest.mark.parametrize(("days", "is_old"), [(0, False), (90, False), (91, True)])
def test_matrix_older_than_90_days_says_so(days: int, *, is_old: bool) -> None:
    today = dt.date.fromisoformat(MATRIX.updated) + dt.timedelta(days=days)
    text = render(View(matrix=MATRIX, machine=None, today=today), "terminal")
    assert (f"{days} days old" in text) == is_old


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


def test_tensorflow_option_with_machine_judges_the_release() -> None:
    read = answer("--tensorflow", "2.20", "--gpu", "B200", "--driver", "580.95.05", "--python", "3.12")
    assert [row["outcome"] for row in read["releases"]] == ["does-not-run"]
    done = run("--tensorflow", "2.20", "--gpu", "V100", "--driver", "580.95.05", "--python", "3.12")
    assert "nvidia-cudnn-cu12==9.10.2.21" in done.stdout


def test_nearest_release_is_shown_where_none_is_compatible() -> None:
    done = run("--driver", "470.256.02", "--gpu", "H100", "--python", "3.13")
    assert done.returncode == 0
    assert "2.21.0\n" in done.stdout
    assert "525.60.13" in done.stdout
    assert "470.256.02" in done.stdout


def test_unknown_gpus_are_not_assumed_absent(tmp_path: Path) -> None:
    found = describe(MATRIX, Asked(driver="535.161.08", python="3.11"), {}, root=tmp_path)
    assert found.machine.gpus is None
    assert not found.machine.for_cpu


@cases(
    (("--driver", "new"), "--driver new"),
    (("--driver", "53"), "--driver 53"),
    (("--driver", "12.4"), "--driver 12.4"),
    (("--driver", ""), "--driver"),
    (("--gpu", "RTX 6000"), "RTX 6000"),
    (("--gpu", "H1000"), "did you mean 'H100'?"),
    (("--python", "three"), "--python three"),
    (("--python", "2.7"), "--python 2.7"),
    (("--python", "311"), "--python 311"),
    (("--python", "/no/such/python"), "/no/such/python"),
    (("--tensorflow", "2.99"), "2.99"),
    (("--tensorflow", "new"), "new"),
    (("--matrix", "/no/such.yaml"), "/no/such.yaml"),
    (("--format", "xml"), "--format xml"),
    (("extra",), "No such command"),
    (("--gpux", "A100"), "No such option"),
    (("--gpu",), "requires an argument"),
    (("--platform", "windoze"), "did you mean 'windows'?"),
    (("--cuda", "new"), "--cuda new"),
    (("--framework", "torch"), "--framework torch"),
    (("--framework", "jax", "--tensorflow", "2.21"), "--framework jax"),
    (("add",), "--wheel"),
    (("add", "--wheel", "/no/such.whl"), "/no/such.whl"),
)
def test_usage_error_exits_with_2(arguments: tuple[str, ...], named: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


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
    done = subprocess.run(
        [sys.executable, "-c", code, *EXAMPLE], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == "[]\n"


def here(root: Path) -> Found:
    return describe(MATRIX, Asked(), {"PATH": os.environ["PATH"]}, root=root)


def test_machine_is_read_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no project with an environment
    found = here(with_driver(tmp_path, H100, H100))
    assert found.machine.driver == "535.161.08"
    assert [gpu.capability for gpu in found.machine.gpus or ()] == ["9.0", "9.0"]
    assert found.machine.python == sys.version.split()[0]
    values = {fact.label: fact.value for fact in found.facts}
    assert values["GPUs"] == "2 x NVIDIA H100 80GB HBM3, compute capability 9.0"


def test_gpu_missing_in_matrix_is_undecided(tmp_path: Path) -> None:
    found = here(with_driver(tmp_path, H100, "Model: NVIDIA X9000\n"))
    assert found.machine.unnamed_gpus == ("NVIDIA X9000",)
    assert not found.machine.for_cpu


def test_driver_without_listed_gpu_leaves_gpus_unknown(tmp_path: Path) -> None:
    found = here(with_driver(tmp_path))
    assert found.machine.gpus is None


def test_machine_without_driver_is_judged_for_cpu(tmp_path: Path) -> None:
    found = here(tmp_path)
    assert found.machine.driver is None
    assert found.machine.for_cpu


def test_release_is_shown_with_what_its_keras_does_on_several_replicas() -> None:
    page = run("--tensorflow", "2.21").stdout
    assert "keras 3.15.1" in page
    assert "tf_keras 2.21.0" in page
    keras, legacy = answer("--tensorflow", "2.21")["keras"]
    assert (keras["release"], legacy["release"]) == ("3.15.1", "2.21.0")
    results = {item["feature"].partition("/")[2]: item["result"] for item in keras["defects"]}
    assert (results["clipnorm"], results["steps-per-execution"]) == ("wrong", "raises")
    assert keras["features"] > len(keras["defects"])
    assert "clipnorm" not in {item["feature"].partition("/")[2] for item in legacy["defects"]}


def test_answer_names_the_keras_of_the_best_release() -> None:
    assert [item["package"] for item in answer(*EXAMPLE)["keras"]] == ["keras", "tf_keras"]
    assert answer(*EXAMPLE, "--framework", "jax")["keras"] == []
