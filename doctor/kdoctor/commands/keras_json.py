"""Commands that put settings into ``keras.json``, and that see whether they are there. Pure text."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

_FILE = 'p = pathlib.Path(os.environ.get("KERAS_HOME") or "~/.keras").expanduser() / "keras.json"'


def put_settings(settings: Mapping[str, str]) -> str:
    """The command that sets these (``floatx``, ``epsilon``, ``image_data_format``) and leaves the others alone."""
    return _python(
        "import json, os, pathlib",
        _FILE,
        "d = json.loads(p.read_text()) if p.exists() else {}",
        f"d.update({_literal(settings)})",
        "p.parent.mkdir(exist_ok=True)",
        "p.write_text(json.dumps(d, indent=4))",
    )


def see_settings(settings: Mapping[str, str]) -> str:
    """The command that exits with 0 where these are set."""
    return _python(
        "import json, os, pathlib", _FILE, "d = json.loads(p.read_text())", f"w = {_literal(settings)}",
        "raise SystemExit({k: d.get(k) for k in w if d.get(k) != w[k]} or 0)",
    )  # fmt: skip


def _literal(settings: Mapping[str, str]) -> str:
    """As JSON and Python both read it; only ``epsilon`` is a number."""
    values = {key: float(text) if key == "epsilon" else text for key, text in sorted(settings.items())}
    return json.dumps(values)


def _python(*statements: str) -> str:
    return f"python3 -c {shlex.quote('; '.join(statements))}"
