"""Loads a snapshot and, with the argument ``judge``, judges it by every check."""

import datetime as dt
import sys
from pathlib import Path

from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan
from kdoctor.engine.judge import judge
from kdoctor.model import Status
from kdoctor.snapshot.document import load


def main(path: str, *, judging: bool) -> None:
    """Load the snapshot and judge it if ``judging``.

    Raises:
        SystemExit: too few checks were judged, so that the time is meaningless.
    """
    catalog = load_catalog()
    chosen = load_checklist("multi-gpu-keras", catalog)
    planned = plan(chosen, catalog, smoke=False)
    facts = load(Path(path), catalog.fact_groups).facts
    rules = chosen.rules(today=dt.date(2026, 1, 1))
    if not judging:
        return
    results = judge(planned, facts, rules)
    judged = sum(result.status in (Status.PASS, Status.FAIL) for result in results)
    if judged < len(results) // 4:
        raise SystemExit(f"only {judged} of {len(results)} checks were judged")
    print(f"{judged} of {len(results)} checks were judged")


if __name__ == "__main__":
    main(sys.argv[1], judging=sys.argv[2] == "judge")
