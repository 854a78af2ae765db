"""Whole reports, kept small."""

from __future__ import annotations

import json
import zlib
from typing import Any


def packed(report: str) -> bytes:
    """The JSON report, compressed."""
    return zlib.compress(json.dumps(json.loads(report), separators=(",", ":")).encode())


def unpacked(blob: bytes) -> dict[str, Any]:
    """The JSON report."""
    report: dict[str, Any] = json.loads(zlib.decompress(blob))
    return report


def statuses_of(report: dict[str, Any]) -> dict[str, str]:
    """Check id to what became of it."""
    return {result["id"]: result["status"] for result in report["results"]}
