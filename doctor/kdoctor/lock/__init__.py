"""The lock: what the last green run of a checklist found, one fact a line, committed beside the checklist."""

from kdoctor.lock.document import SCHEMA, Accepted, Lock, LockError, Measure, loads, text_of
from kdoctor.lock.drift import drift
from kdoctor.lock.facts import Recorded, recorded_facts
from kdoctor.lock.record import expectations_of, make_lock, not_green
from kdoctor.lock.store import load_lock, lock_path, read_lock, write_lock

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
    "read_lock",
    "recorded_facts",
    "text_of",
    "write_lock",
]
