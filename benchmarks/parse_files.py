"""The yardstick of the linter's benchmark: read every script of a folder and parse it, and nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

for path in sorted(Path(sys.argv[1]).glob("*.py")):
    ast.parse(path.read_text(encoding="utf-8"))
