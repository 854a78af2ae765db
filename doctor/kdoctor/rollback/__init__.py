"""The way back: from what drifted since a lock was recorded to the commands that restore it. It runs none of them."""

from kdoctor.rollback.decided import since_last_green, with_steps
from kdoctor.rollback.how import HowMade, how_made
from kdoctor.rollback.model import RollbackPlan, RollbackStep
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.rebuild import RebuildError, base_python, rebuild
from kdoctor.rollback.written import as_json, as_script, as_text

__all__ = [
    "HowMade",
    "RebuildError",
    "RollbackPlan",
    "RollbackStep",
    "as_json",
    "as_script",
    "as_text",
    "base_python",
    "how_made",
    "plan_rollback",
    "rebuild",
    "since_last_green",
    "with_steps",
]
