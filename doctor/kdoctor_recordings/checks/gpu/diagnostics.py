import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import READ_ONLY, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor.text.wrap import shorten
from kdoctor_checks._gpus import RESTART
from kdoctor_recordings.facts import Diagnostic, Diagnostics

NONE_GIVEN = "no results of a diagnostic tool (import the output of dcgmi diag)"
_MANUAL = " (https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html)"


@check("gpu.diagnostics", severity=Severity.ERROR, needs_gpus=True, unread=NONE_GIVEN)
def diagnostics(results: Diagnostics) -> Iterator[Outcome]:
    """No test of an NVIDIA diagnostic tool failed.

    Why: NVIDIA's tools test and report what cannot be read from a GPU. kdoctor does not run them, but reads what they
    print, such as in a scheduler's prolog. A job on a GPU that failed a test will fail.
    Remedy: follow the message of the test, and drain the machine until the test passes.
    Sources:
        https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html
        https://docs.nvidia.com/health-validation/getting-started/overview.md
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide/index.html
    """
    subjects = dict.fromkeys((result.tool, result.subject) for result in results.results)
    for tool, subject in subjects:
        own = [result for result in results.results if (result.tool, result.subject) == (tool, subject)]
        failed = [result for result in own if result.status == "fail" and not of_setting(result)]
        unclear = [result for result in own if result.status == "unknown"]
        if failed:
            tests = list(dict.fromkeys(result.test for result in failed))
            message = next((result.message for result in failed if result.message), "")
            remedy = _remedy(tool, message)
            yield Finding(
                subject=subject,
                observed=f"{tool}: {', '.join(tests)} failed" + (f": {message}" if message else ""),
                brief=f"{some(tests, 2)}{'' if tool == 'DCGM' else ' failed'}",
                expected="every test passes",
                remedy=remedy,
                rollback=RESTART if remedy.commands else READ_ONLY,
            )
        elif unclear:
            yield Unjudged(subject=subject, reason=f"{tool}: no clear result of {some([r.test for r in unclear])}")
        elif passed := [result for result in own if result.status == "pass"]:
            observed = f"{tool}: {counted(len(passed), 'test')} passed"
            is_idle = all(result.message.startswith("nothing to manage") for result in passed)
            yield Evidence(subject=subject, observed=observed, brief=f"{tool} {'not needed' if is_idle else 'passed'}")
    if not any(result.status in ("fail", "unknown", "pass") and not of_setting(result) for result in results.results):
        skipped = some(list(dict.fromkeys(result.test for result in results.results if result.status == "skip")))
        none = NotApplicable(reason="the diagnostic tools report no test that passed or failed")
        yield Unjudged(subject="diagnostics", reason=f"all tests were skipped: {skipped}") if skipped else none


def said(message: str) -> str:
    """The message, with which a fix begins."""
    return f"The message: {shorten(message, 160).rstrip('.')}. " if message else ""


def of_setting(result: Diagnostic) -> Remedy | None:
    """The fix of a test that failed because of a setting that only the diagnostic needs; None for any other result."""
    if result.status == "fail" and "persistence mode" in f"{result.test} {result.message}".lower():
        return Remedy.configure("Turn on persistence mode, which dcgmi diag asks for.", "sudo nvidia-smi -pm 1")
    return None


_REMEDIES = {
    "nvidia-gridd": Remedy.configure(
        "Give this virtual machine a license for its vGPU: its token in /etc/nvidia/ClientConfigToken. Without "
        "one, the driver limits the vGPU.",
        "sudo systemctl restart nvidia-gridd",
        look=("nvidia-smi -q | grep -i license", "sudo journalctl -u nvidia-gridd"),
    ),
    "fabric manager: .*config": Remedy.configure(
        "Correct the item that the message names, or take the file of the driver's version, and start again.",
        "sudoedit /usr/share/nvidia/nvswitch/fabricmanager.cfg",
        "sudo systemctl restart nvidia-fabricmanager",
        look=("sudo journalctl -u nvidia-fabricmanager",),
    ),
    "fabric manager: ": Remedy.configure(
        "Start the fabric manager in the driver's version, and read why it ended. Without it, CUDA does not start "
        "on a machine with NVSwitches (error 802).",
        "sudo systemctl restart nvidia-fabricmanager",
        look=("sudo journalctl -u nvidia-fabricmanager", "nvidia-smi -q | grep -A 3 Fabric"),
    ),
    "container runtime: ": Remedy.configure(
        "Request a device that the host lists, by the UUID of nvidia-smi -L. A MIG instance has its own (MIG-...), "
        "not MIG-GPU-.../1/0.",
        look=("nvidia-smi -L",),
    ),
    "vGPU manager: ": Remedy.reinstall(
        "Install in the guest the driver of the host's vGPU release, or update the host's driver.",
        look=("nvidia-smi", "sudo journalctl -u nvidia-vgpu-mgr"),
    ),
    "Slurm: ": Remedy.inspect(
        "Find out why the driver lists fewer GPUs than Slurm was configured with, then resume the node.",
        "nvidia-smi -L",
        "sudo dmesg | grep -iE 'NVRM|Xid'",
    ),
    "(?i).*imex": Remedy.configure(
        "Start IMEX again on each node of its domain, and read why it ended. Without it, GPUs of several nodes do "
        "not reach each other's memory.",
        "sudo systemctl restart nvidia-imex",
        look=("nvidia-imex-ctl -N", "sudo journalctl -u nvidia-imex"),
    ),
    r"(?i).*nvlink.{,24}\bdown\b": Remedy.inspect(
        "If the GPU has NVLinks, restart the machine, start the fabric manager, and have it serviced if they stay "
        "down. Old releases of DCGM also report GPUs without NVLinks: update DCGM.",
        "nvidia-smi nvlink -s",
        "nvidia-smi topo -m",
    ),
}
"""A tool with words of its message, and the fix. The most telling ones come first."""


def _remedy(tool: str, message: str) -> Remedy:
    own = next((remedy for words, remedy in _REMEDIES.items() if re.match(words, f"{tool}: {message}")), None)
    manual = _MANUAL if tool != "NHC" else ""
    return own or Remedy.inspect(
        f"{said(message)}Follow it{manual}, and drain the machine until the test passes.", "dcgmi diag -r 3"
    )
