"""The lock: what the last green run of a checklist found, one fact a line, committed beside the checklist."""

from typing import TYPE_CHECKING

from kdoctor.lazily import from_modules

if TYPE_CHECKING:
    from kdoctor.lock.document import SCHEMA, Accepted, Lock, LockError, Measure, loads, text_of
    from kdoctor.lock.drifted import drift
    from kdoctor.lock.expectations import expectations_of
    from kdoctor.lock.facts import Recorded, recorded_facts, without_job
    from kdoctor.lock.record import make_lock, not_green, own_lock
    from kdoctor.lock.store import load_lock, lock_path, read_lock, write_lock
else:
    __getattr__ = from_modules(
        __name__,
        {
            "document": ["SCHEMA", "Accepted", "Lock", "LockError", "Measure", "loads", "text_of"],
            "drifted": ["drift"],
            "expectations": ["expectations_of"],
            "facts": ["Recorded", "recorded_facts", "without_job"],
            "record": ["make_lock", "not_green", "own_lock"],
            "store": ["load_lock", "lock_path", "read_lock", "write_lock"],
        },
    )

__all__ = [
    "SCHEMA",
    "Accepted",
    "Lock",
    "LockError",
    "Measure",
    "Recorded",
    "drift",
    "expectations_of",
    "load_lock",
    "loads",
    "lock_path",
    "make_lock",
    "not_green",
    "own_lock",
    "read_lock",
    "recorded_facts",
    "text_of",
    "without_job",
    "write_lock",
]
