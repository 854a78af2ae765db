"""One line and performance data, as Nagios, Icinga and Naemon read them.

Source: https://nagios-plugins.org/doc/guidelines.html ("Plugin Output for Nagios").
"""

from kdoctor.engine.report import Report
from kdoctor.report.phrases import verdict_line
from kdoctor.text.canvas import Canvas


def render_nagios(report: Report, canvas: Canvas) -> str:
    """``KDOCTOR CRITICAL - ... | pass=7 warning=2 error=1 ... time=34.21s``.

    The service's state is WARNING if a check failed without failing the run. Its exit code is computed by
    :func:`kdoctor.engine.verdict.exit_code_for`.
    """
    # A bar ends the text: what follows is read as performance data.
    text = " ".join(verdict_line(report).replace("|", "/").split())
    data = [f"{mark.value}={number};;;0;{len(report.results)}" for mark, number in report.marks().items()]
    data.append(f"time={report.duration_s:.3f}s;;;0")
    steps = [(f"{item.scenario}/{item.case}", item.step_s) for item in report.trainings]
    data += [f"{_label(f'{name} step')}={seconds:.6f}s;;;0" for name, seconds in steps if seconds is not None]
    return f"KDOCTOR {report.verdict.service} - {text} | {' '.join(data)}\n"


def _label(name: str) -> str:
    """A label with spaces is quoted, and contains neither ``=`` nor a quote."""
    return "'" + " ".join(name.replace("'", "").replace("=", "-").replace("|", "/").split()) + "'"
