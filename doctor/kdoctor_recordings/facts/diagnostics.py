"""What other tools concluded about this machine."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup

DiagnosticStatus = Literal["pass", "warn", "fail", "skip", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """The result of one test for one subject."""

    tool: str
    """``dcgmi diag``, ``fabric manager``, ``nvidia-smi nvlink -e``."""
    test: str
    """As the tool names it."""
    subject: str
    """``GPU 3``, ``NVSwitch 0000:86:00.0``, or the tool's name of it."""
    status: DiagnosticStatus
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnostics(FactGroup):
    """The results of diagnostic tools, from their files."""

    group: ClassVar[str] = "diagnostics"

    results: tuple[Diagnostic, ...]
