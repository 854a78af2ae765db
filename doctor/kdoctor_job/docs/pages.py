"""The generated part of the page about your model and data: how a factor of the gradient changes the step."""

import re
from pathlib import Path

from kdoctor_job.target.scales import INVARIANT, PARTLY, PROPORTIONAL, SCALES

_STEPS = {PROPORTIONAL: "makes a step c times as long", PARTLY: "makes a longer step", INVARIANT: "makes the same step"}


def pages() -> dict[str, str]:
    """The page with a table of optimizers after ``<!-- optimizers -->``."""
    rows = ["| Optimizer | A gradient of c * g | Why |", "| --- | --- | --- |"]
    whys = {name: re.sub(r"^\w -?= [^:;]+", r"`\g<0>`", scale.derivation) for name, scale in SCALES.items()}
    rows += [f"| {name} | {_STEPS[scale.kind]} | {whys[name]} |" for name, scale in SCALES.items()]
    page = Path(__file__).with_name("preflight.md").read_text(encoding="utf-8")
    return {"preflight.md": page.replace("<!-- optimizers -->\n", "\n".join(["", *rows, ""]))}
