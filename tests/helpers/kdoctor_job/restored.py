"""What a job showed that was saved, killed and restored."""

from typing import Any

GOOD: dict[str, Any] = {
    "folder": "/data/saves", "variables": 14, "lost": (), "apart": (), "lost_alone": (), "half": "noticed",
    "backup_epochs": (1,), "backup_apart": (), "save_s": 18.0, "restore_s": 25.0, "save_bytes": 2**30,
    "free_bytes": 2**40,
}  # fmt: skip
