"""The codes of NVIDIA's driver (Xids, SXids), by which a message of the kernel log is explained."""

import re
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from kdoctor.failures.known import KnownFailure
from kdoctor.records import record

_TABLES = "kdoctor_checklists.kernel_log"
_NAMES = {"xids": "Xid", "sxids": "SXid"}
_ACTIONS = {
    "IGNORE": "nothing",
    "RESTART_APP": "to restart the program",
    "RESET_GPU": "to reset the GPU",
    "RESTART_BM": "to restart the machine",
    "RESTART_VM": "to restart the virtual machine",
    "CHECK_MECHANICALS": "to check how the GPU is seated and powered",
    "UPDATE_SWFW": "to update driver and firmware",
    "CONTACT_SUPPORT": "to contact support",
}
"""The buckets of NVIDIA's catalog for what to do now. The others are the names of procedures."""
_SHORT = re.compile(r"\W*(?P<name>s?xid)[\W_]{0,3}(?P<code>\d{1,6})\b(?P<rest>[^:]{0,40})$", re.IGNORECASE)
"""A code as people name it: Xid 79, "SXid: 12028", xid_13 on GPU 3."""
_LINES = {"xid": "NVRM: Xid (PCI:0000:00:00): {}, ", "sxid": "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): {}, "}
"""As the driver writes it."""


@record
class Row:
    """A code and what it means."""

    code: int
    title: str
    cause: str
    harmless: bool = False


def spelled_out(text: str) -> str:
    """The driver's message, if the text only names one of its codes; else the text."""
    found = _SHORT.match(text)
    return _LINES[found["name"].lower()].format(found["code"]) if found else text


def described_in(text: str, failure: KnownFailure) -> Row | None:
    """The row of the first code in a text; None for a failure without a table."""
    found = (re.search(message, text) for message in failure.messages) if failure.table else ()
    code = next((match["code"] for match in found if match), None)
    return described(failure, code)


def described(failure: KnownFailure, code: str | None) -> Row | None:
    """The row of the code in a failure's table; None for a failure without one."""
    if failure.table is None or code is None:
        return None
    name = f"{_NAMES[failure.table]} {code}"
    row = table(failure.table).get(int(code))
    if row is None:
        return Row(code=int(code), title=name, cause=f"NVIDIA's catalog has no {name}.")
    meaning, bucket = str(row["meaning"]).rstrip("."), row.get("now", "")
    if "recovery" in row:
        asked = f"NVIDIA's manual says: {str(row['recovery']).rstrip('.')}."
    else:
        asked = f"NVIDIA's catalog asks {_ACTIONS.get(bucket, f'for its procedure {bucket}')}."
    harmless = bucket == "IGNORE" or row.get("severity") == "non-fatal"
    return Row(code=int(code), title=f"{name}: {meaning}", cause=f"{meaning}. {asked}", harmless=harmless)


@lru_cache(maxsize=4)
def table(name: str) -> dict[int, dict[str, Any]]:
    """The rows of a table by code."""
    file = resources.files(_TABLES).joinpath(f"{name}.yaml")
    return {row["code"]: row for row in yaml.safe_load(file.read_bytes())[name]}
