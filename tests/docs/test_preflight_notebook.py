"""The example notebook runs in a real kernel, and shows what its text says."""

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
    """The outputs of the code cells, by a kernel of this interpreter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook tools, not of ours
        import nbformat
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        class Manager(AsyncKernelManager):
            """A kernel of this interpreter, whatever kernels are registered on this machine."""

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
def test_the_two_mistakes_are_found_and_no_other(cells: list[dict[str, Any]]) -> None:
    html = table(cells[2])
    assert html.count(">error</b>") == 2
    assert "outside every strategy&#x27;s scope" in html
    assert "1 example over 2 replicas" in html


@pytest.mark.tensorflow
def test_what_shows_no_html_has_the_text_and_nothing_is_shown_twice(cells: list[dict[str, Any]]) -> None:
    for cell in cells[2:4]:
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert (kinds.count("execute_result"), kinds.count("display_data")) == (1, 0)
        (plain,) = (item["data"]["text/plain"] for item in cell["outputs"] if item["output_type"] == "execute_result")
        assert plain.startswith("Target ")
        assert "job.final-batch" in plain


@pytest.mark.tensorflow
def test_the_right_form_passes_and_trains(cells: list[dict[str, Any]]) -> None:
    html = table(cells[3])
    assert ">error</b>" not in html
    assert ">warning</b>" not in html
    assert cells[4]["outputs"][-1]["text"] == "trained 1 epoch\n"


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
