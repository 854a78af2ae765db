"""What ``kdoctor explain`` and ``kdoctor.guard`` say about messages and exceptions."""

from collections.abc import Mapping

from kdoctor.catalog.explanations import Explanations
from kdoctor.check import Check
from kdoctor.smoke.scenario import Scenario
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.exceptions import describe_exception


def _causes(text: str, checks: Mapping[str, Check], scenarios: Mapping[str, Scenario]) -> list[str]:
    return [cause.id for cause in diagnose_text(text, checks, scenarios).causes]


EXPLANATIONS = Explanations(causes=_causes, exception=describe_exception)
