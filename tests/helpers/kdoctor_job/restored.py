"""What a job showed that was saved, killed and restored."""

from typing import Any

GOOD: dict[str, Any] = {
    "folder": "/data/saves", "variables": 14, "lost": (), "apart": (), "lost_alone": (), "half": "noticed",
    "resumed_step": 4, "repeated": 0, "missing": 0,
    "backup_step": 4, "backup_apart": (), "save_s": 18.0, "restore_s": 25.0, "save_bytes": 2**30,
    "free_bytes": 2**40,
}  # fmt: skip
