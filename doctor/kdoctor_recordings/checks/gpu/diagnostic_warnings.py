from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import READ_ONLY, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks._gpus import RESTART
from kdoctor_recordings.checks.gpu.diagnostics import NONE_GIVEN, of_setting, said
from kdoctor_recordings.facts import Diagnostics

_OFF_AGAIN = Rollback.to("turn persistence mode off again", "sudo nvidia-smi -pm 0")


@check("gpu.diagnostic-warnings", severity=Severity.WARNING, needs_gpus=True, unread=NONE_GIVEN)
def diagnostic_warnings(results: Diagnostics) -> Iterator[Outcome]:
    """No NVIDIA diagnostic tool gave a warning.

    Why: a warning of dcgmi diag or the fabric manager does not take the machine out of service. Many
    of them, or the same one again, announce a failure.
    Remedy: read the message, and watch whether it returns.
    Sources:
        https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
    """
    warned = [result for result in results.results if result.status == "warn" or of_setting(result)]
    for subject in dict.fromkeys(result.subject for result in warned):
        own = [result for result in warned if result.subject == subject]
        tests = list(dict.fromkeys(result.test for result in own))
        setting = of_setting(own[-1])
        remedy = setting or _remedy(own[0].tool, own[-1].message)
        yield Finding(
            subject=subject,
            observed=f"{own[0].tool}: {', '.join(tests)}: {own[-1].message or 'a warning'}",
            brief=f"{own[0].tool}: {some(tests, 2)}",
            expected="no warning",
            remedy=remedy,
            rollback=_OFF_AGAIN if setting else RESTART if remedy.commands else READ_ONLY,
        )
    if warned:
        return
    if any(result.status == "pass" for result in results.results):
        tests_run = counted(sum(result.status == "pass" for result in results.results), "test")
        yield Evidence(subject="diagnostics", observed=f"no warning in {tests_run}")
    else:
        yield NotApplicable(reason="the diagnostic tools report no test that passed")


_LOOK = {"fabric manager": "sudo journalctl -u nvidia-fabricmanager", "nvidia-smi nvlink -e": "nvidia-smi nvlink -e"}


def _remedy(tool: str, message: str) -> Remedy:
    if tool == "nvidia-persistenced" and ("signal" in message or "Shutdown" in message):
        return Remedy.configure(
            "Start the daemon again, if the GPUs are to stay initialized between programs.",
            "sudo systemctl restart nvidia-persistenced",
            look=("nvidia-smi -q | grep Persistence", "sudo journalctl -u nvidia-persistenced"),
        )
    if tool == "nvidia-persistenced":
        return Remedy.configure(
            "Load the driver's modules and make its device files, then start the daemon again. A container has the "
            "host's.",
            "sudo nvidia-modprobe -c 0 -u",
            "sudo systemctl restart nvidia-persistenced",
            look=("nvidia-smi", "sudo dmesg | grep -iE 'NVRM|nvidia'"),
        )
    return Remedy.inspect(f"{said(message)}Watch whether it returns.", _LOOK.get(tool, "dcgmi health -c"))
