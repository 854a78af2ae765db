"""NVIDIA's tables of Xids, errors of NVLink 5 and SXids, which ``kdoctor_checklists.kernel_log`` contains."""

from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from kdoctor.records import record

_TABLES = "kdoctor_checklists.kernel_log"


@record
class Xid:
    """A row of the catalog."""

    code: int
    mnemonic: str
    meaning: str
    now: str = ""
    """The resolution bucket of the immediate action; empty if the catalog has none."""
    later: str = ""
    """The resolution bucket of the investigation."""


@record
class NvLinkError:
    """A row of the decoding of Xids 144 to 150."""

    xid: int
    subcode: str
    """One name, or the names before and since driver 575, separated by a slash."""
    status: int
    severity: str
    now: str
    later: str = ""


@record
class SXid:
    """A row of the appendix of the fabric manager user guide."""

    code: int
    meaning: str
    severity: Literal["non-fatal", "fatal", "always-fatal", "notable"]
    recovery: str = ""


def _rows(table: str, key: str) -> list[dict[str, Any]]:
    text = resources.files(_TABLES).joinpath(table).read_bytes()
    rows: list[dict[str, Any]] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))[key]  # noqa: S506 - both are safe
    return rows


@cache
def xids() -> dict[int, Xid]:
    """The Xids by code."""
    return {row["code"]: Xid(**row) for row in _rows("xids.yaml", "xids")}


@cache
def nvlink_errors() -> tuple[NvLinkError, ...]:
    """The errors of NVLink 5."""
    return tuple(NvLinkError(**row) for row in _rows("nvlink5.yaml", "errors"))


@cache
def sxids() -> dict[int, SXid]:
    """The SXids by code."""
    return {row["code"]: SXid(**row) for row in _rows("sxids.yaml", "sxids")}
