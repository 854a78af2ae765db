"""The checklist: what people agree on, written in YAML, read strictly, and made into a plan."""

from typing import TYPE_CHECKING

from kdoctor.lazily import from_modules

if TYPE_CHECKING:
    from kdoctor.checklist.courses import decisions
    from kdoctor.checklist.document import SCHEMA, json_schema
    from kdoctor.checklist.layers import KINDS, Override
    from kdoctor.checklist.load import is_path, load_checklist, read_text
    from kdoctor.checklist.planning import SelectionError, plan, scenarios_to_run
    from kdoctor.checklist.problems import ChecklistError, Problem
    from kdoctor.checklist.resolve import Checklist, ChecklistEntry, RollbackPolicy, ScenarioEntry
    from kdoctor.checklist.scenarios import checklist_of, choose_scenarios, typical_seconds, with_own_model
    from kdoctor.checklist.text import plain_text, resolved_text
else:
    __getattr__ = from_modules(
        __name__,
        {
            "courses": ["decisions"],
            "document": ["SCHEMA", "json_schema"],
            "layers": ["KINDS", "Override"],
            "load": ["is_path", "load_checklist", "read_text"],
            "planning": ["SelectionError", "plan", "scenarios_to_run"],
            "problems": ["ChecklistError", "Problem"],
            "resolve": ["Checklist", "ChecklistEntry", "RollbackPolicy", "ScenarioEntry"],
            "scenarios": ["checklist_of", "choose_scenarios", "typical_seconds", "with_own_model"],
            "text": ["plain_text", "resolved_text"],
        },
    )

__all__ = [
    "KINDS",
    "SCHEMA",
    "Checklist",
    "ChecklistEntry",
    "ChecklistError",
    "Override",
    "Problem",
    "RollbackPolicy",
    "ScenarioEntry",
    "SelectionError",
    "checklist_of",
    "choose_scenarios",
    "decisions",
    "is_path",
    "json_schema",
    "load_checklist",
    "plain_text",
    "plan",
    "read_text",
    "resolved_text",
    "scenarios_to_run",
    "typical_seconds",
    "with_own_model",
]
