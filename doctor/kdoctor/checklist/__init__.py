"""The checklist: what people agree on, written in YAML, read strictly, and made into a plan."""

from kdoctor.checklist.decisions import decisions
from kdoctor.checklist.document import SCHEMA, json_schema
from kdoctor.checklist.load import load_checklist, read_text
from kdoctor.checklist.planning import SelectionError, plan, scenarios_to_run
from kdoctor.checklist.problems import ChecklistError, Problem
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, RollbackPolicy, ScenarioEntry

__all__ = [
    "SCHEMA",
    "Checklist",
    "ChecklistEntry",
    "ChecklistError",
    "Problem",
    "RollbackPolicy",
    "ScenarioEntry",
    "SelectionError",
    "decisions",
    "json_schema",
    "load_checklist",
    "plan",
    "read_text",
    "scenarios_to_run",
]
