"""The integration files, and the installed tools of their systems."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "integrations"
KDOCTOR = Path(sys.executable).with_name("kdoctor")
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""The command with which GitHub runs a bash step."""


def read(path: Path) -> Any:
    """Load a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def tool(name: str) -> str | None:
    """The path of a program, searched also in the folders of administrators and of the Nagios plugins."""
    return shutil.which(
        name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/nagios/plugins"
    )


def needs(*names: str) -> list[pytest.MarkDecorator]:
    """Skip the test if one of the programs is not installed."""
    missing = [name for name in names if tool(name) is None]
    return [pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")]
