"""What a result says, for tests of the numbers and names in it."""

from kdoctor.engine.report import Result


def said(result: Result) -> dict[str, str]:
    """What each subject's finding or evidence observed, or why it was not judged; the first word about a subject."""
    found: dict[str, str] = {}
    for judged in result.findings:
        found.setdefault(judged.finding.subject, judged.finding.observed)
    for evidence in result.evidence:
        found.setdefault(evidence.subject, evidence.observed)
    for unjudged in result.unjudged:
        found.setdefault(unjudged.subject, unjudged.reason)
    return found


def briefs(result: Result) -> list[str]:
    """The short form of each finding, then of each piece of evidence."""
    return [*(judged.finding.headline for judged in result.findings), *(item.brief for item in result.evidence)]
