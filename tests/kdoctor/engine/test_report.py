from helpers.cases import cases
from kdoctor.engine.report import Conclusion, Verdict


@cases(
    (Conclusion.PASS, False, "OK"),
    (Conclusion.PASS, True, "WARNING"),
    (Conclusion.FAIL, True, "CRITICAL"),
    (Conclusion.UNKNOWN, True, "UNKNOWN"),
)
def test_service_state_follows_the_conclusion(conclusion: Conclusion, *, warned: bool, service: str) -> None:
    assert Verdict(conclusion=conclusion, exit_code=0, reason="", warned=warned).service == service
