"""Commands that change and verify settings in ``keras.json``."""

import json
import math
from collections.abc import Mapping

from kdoctor.commands.shell import quoted

_FILE = 'p = pathlib.Path(os.environ.get("KERAS_HOME") or "~/.keras").expanduser() / "keras.json"'


def put_settings(settings: Mapping[str, str]) -> str:
    """The command that sets these (``floatx``, ``epsilon``, ``image_data_format``) and keeps the others."""
    return _python(
        "import json, os, pathlib",
        _FILE,
        "d = json.loads(p.read_text()) if p.exists() else {}",
        f"d.update({_literal(settings)})",
        "p.parent.mkdir(exist_ok=True)",
        "p.write_text(json.dumps(d, indent=4))",
    )


def verify_settings(settings: Mapping[str, str]) -> str:
    """The command that exits with 0 if these are set."""
    return _python(
        "import json, os, pathlib", _FILE, "d = json.loads(p.read_text())", f"w = {_literal(settings)}",
        "raise SystemExit({k: d.get(k) for k in w if d.get(k) != w[k]} or 0)",
    )  # fmt: skip


def _literal(settings: Mapping[str, str]) -> str:
    """A literal for both JSON and Python; only ``epsilon`` is a number."""
    values = {key: _number(text) if key == "epsilon" else text for key, text in sorted(settings.items())}
    return json.dumps(values)


def _number(text: str) -> float | str:
    """The number; the text as it is if it is not one that JSON has."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _python(*statements: str) -> str:
    return quoted("python3", "-c", "; ".join(statements))
