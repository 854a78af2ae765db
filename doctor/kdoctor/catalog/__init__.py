"""The checks, probes, scenarios, facts, checklists and explanations that a run can use."""
