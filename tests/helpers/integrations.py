"""The files for other systems, and whether those systems' tools are here."""

from __future__ import annotations

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
"""As GitHub runs a step whose shell is bash."""


def read(path: Path) -> Any:
    """A YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def tool(name: str) -> str | None:
    """The path of a program, those for administrators included."""
    return shutil.which(
        name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/nagios/plugins"
    )


def needs(*names: str) -> list[pytest.MarkDecorator]:
    """Skips where a program is missing, and says which."""
    missing = [name for name in names if tool(name) is None]
    return [pytest.mark.skipif(bool(missing), reason=f"not installed here: {', '.join(missing)}")]
