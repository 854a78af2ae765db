"""The example notebook, executed by a kernel of this interpreter.

``python -m helpers.notebook`` (with the paths of ``pythonpath`` in pyproject.toml) writes its outputs into docs.
"""

import json
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from helpers.command import environ

NOTEBOOK = Path(__file__).parents[2] / "doctor/kdoctor_job/docs/preflight.ipynb"
_SHOWN_PYTHON = "/opt/job/bin/python"


def stored() -> dict[str, Any]:
    """The notebook as it is committed."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return notebook


def executed() -> dict[str, Any]:
    """The notebook with new outputs, without logs and paths of this machine."""
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

        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(
                nbformat.read(NOTEBOOK, as_version=4),  # type: ignore[no-untyped-call]
                timeout=300,
                kernel_manager_class=Manager,
                resources={"metadata": {"path": folder}},
            )
            done = client.execute(env=environ(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", COLUMNS="80"))
    text = json.dumps(done).replace(json.dumps(sys.executable)[1:-1], _SHOWN_PYTHON)
    notebook: dict[str, Any] = json.loads(text)
    notebook["metadata"] = stored()["metadata"]
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    return notebook


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any], kind: str) -> str:
    """The result of a cell in one form, such as ``text/html``; empty if it has none."""
    found = [output["data"][kind] for output in cell["outputs"] if output["output_type"] == "execute_result"]
    return "".join("".join(text) for text in found)


def without_numbers(text: str) -> str:
    """The words, with one for every number: numbers differ from run to run, and where a line breaks with them."""
    return " ".join(re.sub(r"\d+(?:\.\d+)?(?:e-?\d+)?", "N", text).split())


def _as_lines(notebook: dict[str, Any]) -> dict[str, Any]:
    """Texts as lists of lines, as notebooks store them."""
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = "".join(output["text"]).splitlines(keepends=True)
            for kind, text in output.get("data", {}).items():
                output["data"][kind] = "".join(text).splitlines(keepends=True)
    return notebook


if __name__ == "__main__":
    NOTEBOOK.write_text(
        json.dumps(_as_lines(executed()), indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )
