"""The yardstick for the linter: read and parse every script of a folder."""

import ast
import sys
from pathlib import Path

for path in sorted(Path(sys.argv[1]).glob("*.py")):
    ast.parse(path.read_text(encoding="utf-8"))
