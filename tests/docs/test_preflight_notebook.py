"""The example notebook runs in a real kernel, and its output matches its text."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from helpers.command import environ

NOTEBOOK = Path(__file__).parents[2] / "docs" / "preflight.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The code cells with their output, executed by a kernel of this interpreter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the notebook tools
        import nbformat
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        class Manager(AsyncKernelManager):
            """Start a kernel of this interpreter instead of a registered one."""

            @property
            def kernel_spec(self) -> KernelSpec:
                argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
                return KernelSpec(argv=argv, display_name="this", language="python")

        notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_manager_class=Manager,
            resources={"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}},
        )
        done = client.execute(env=environ(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1"))
    plain: dict[str, Any] = json.loads(json.dumps(done))
    return [cell for cell in plain["cells"] if cell["cell_type"] == "code"]


def table(cell: dict[str, Any]) -> str:
    (shown,) = (output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result")
    html: str = shown["text/html"]
    return html


@pytest.mark.tensorflow
def test_first_preflight_finds_exactly_two_errors(cells: list[dict[str, Any]]) -> None:
    html = table(cells[2])
    assert html.count(">error</b>") == 2
    for check in ("job.model-in-scope", "job.final-batch"):
        assert check in html


@pytest.mark.tensorflow
def test_result_is_displayed_once_with_plain_text(cells: list[dict[str, Any]]) -> None:
    for cell in cells[2:4]:
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert (kinds.count("execute_result"), kinds.count("display_data")) == (1, 0)
        (plain,) = (item["data"]["text/plain"] for item in cell["outputs"] if item["output_type"] == "execute_result")
        assert plain.startswith("Target ")
        assert "job.final-batch" in plain


@pytest.mark.tensorflow
def test_corrected_job_passes_and_trains(cells: list[dict[str, Any]]) -> None:
    html = table(cells[3])
    assert ">error</b>" not in html
    assert ">warning</b>" not in html
    assert cells[4]["outputs"][-1]["text"] == "trained 1 epoch\n"


def test_notebook_is_stored_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
