"""Reads what is recognized by its words in any line: what NVIDIA's services, DCGM, monitoring tools and people write.

Sources: https://docs.nvidia.com/deploy/xid-errors/ for Xids;
https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html for the fabric manager;
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html#background-health-checks and
https://github.com/NVIDIA/DCGM (``dcgm_errors.c``) for DCGM's health watch and its errors;
https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide/index.html for licenses of vGPUs;
https://github.com/NVIDIA/cuda-samples for the tests of peer access; https://docs.nvidia.com/jetson/ for tegrastats.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kdoctor.facts import KernelLog
from kdoctor.probes.kernel_log import parse_log
from kdoctor_recordings.facts import Diagnostic, Diagnostics, DiagnosticStatus
from kdoctor_recordings.formats.part import GpuPart, PairPart, Part, Section, sysfs_bus_id

_FABRIC = "fabric manager"
_PERSISTENCE = "nvidia-persistenced"
_LICENSE = "nvidia-gridd"
_SLURM = "Slurm"
_RUNTIME = "container runtime"
_VGPU = "vGPU manager"
_MISMATCH = re.compile(r"(?i:fabric ?manager).*(?:version mismatch|don't match|does(?:n't| not) match)")
_STATES: dict[str, tuple[tuple[DiagnosticStatus, str], ...]] = {
    _FABRIC: (
        ("skip", r"(?i:NV_WARN_NOTHING_TO_DO|No NVSwitch(?:es)? (?:found|detected))"),
        ("fail", r"nvidia-fabricmanager\.service(?::.*code=(?:exited|dumped|killed)| failed because)"),
        ("fail", r"nvidia-fabricmanager\.service: Failed with|Failed to start .*(?i:fabric ?manager)"),
        ("fail", r"ExecStart=\S*nv-fabricmanager .*status=[1-9]"),
        ("fail", r'(?i:nv-?fabricmanager|Fabric Manager)\S*"?.* failed! Exit code'),
        ("fail", _MISMATCH.pattern),
        ("fail", r"(?i:fabric.?manager)\b[^.]{,64}(?:\bnot active\b|active\W{1,8}false|\binvalid\b|unable to)"),
        ("fail", r"(?i:system not yet initialized|SYSTEM_?NOT_?READY)|\b(?i:fabric)\b[^.:]{,24}\bIn Progress"),
        ("fail", r"nvidia-fabricmanager\.service Active: (?:failed|inactive|activating \(auto)"),
        ("pass", r"Main PID: \d+ \(nv-fabricmanage|nvidia-fabricmanager\.service Active: active"),
        ("pass", r'Started (?:"Nvidia Fabric Manager"|nvidia-fabricmanager|NVIDIA fabric manager service)'),
        ("fail", r'Stopped (?:"Nvidia Fabric Manager"|nvidia-fabricmanager|NVIDIA fabric manager service)'),
    ),
    _SLURM: (("fail", r"gres/gpu\b.{,20}\bcount\b.{,20}\b(?:lower|low)\b"),),
    _RUNTIME: (
        ("fail", r"nvidia-container-(?:cli|runtime)\S*: .*(?:unknown device|(?:could not|failed to) find .*device)"),
    ),
    _VGPU: (("fail", r"Incompatible Guest/Host drivers|(?i:vgpu)\b.*(?i:version mismatch)\b.*(?i:guest)"),),
    # Without the device files of the driver, the daemon does not start. A GPU that it registered was opened.
    _PERSISTENCE: (
        ("warn", r"Failed to query NVIDIA devices|Failed to start (?:nvidia-persiste|NVIDIA Persistence)"),
        ("warn", r"nvidia-persistenced\.service(?:: Failed with| Active: failed)"),
        ("warn", r"nvidia-persistenced\[\d+\]: (?:Received signal|Shutdown)"),
        ("pass", r"nvidia-persistenced(?:\[\d+\])?: device [\da-f:.]+ - regist|Started NVIDIA Persistence"),
    ),
    _LICENSE: (
        ("skip", r"nvidia-gridd\b.*Licensing not supported"),
        ("fail", r"(?i:license.status)\b[^.]{,48}Unlicensed|gridd\b.*(?:Failed to acquire|nlicens|expired)"),
        ("fail", r"nvidia-gridd\b.*(?:[Vv]alid (?:GRID )?license not found|Failed server communication)"),
        ("pass", r"(?i:license.status)\W{1,48}Licensed|gridd\b.*[Ll]icense (?:acquired|renewed) success"),
    ),
}
"""What a line says about a service. Of several lines the last one counts, except that a machine without NVSwitches, or
without vGPUs, has nothing to manage."""
_SERVICES = {tool: tuple((state, re.compile(words)) for state, words in rows) for tool, rows in _STATES.items()}
_TESTS = {
    _LICENSE: "licensing",
    _RUNTIME: "search for the device",
    _VGPU: "comparison of driver versions",
    _SLURM: "GPU count",
}
_LOG = re.compile(r"(?:\d+:)?\[\w{3} \d\d \d{4} [\d:]{8}\] \[(?P<level>[A-Z]+)\] \[tid \d+\] (?P<message>.*)")
"""A line of the fabric manager's own log. Its errors are read, and a warning is not."""
_SWITCH_ERROR = re.compile(
    r"NVSwitch (?P<word>non-fatal|fatal) error (?P<code>\d+)(?: on fid \d+)? "
    r"on NVSwitch pci bus id (?P<address>[0-9a-fA-F:.]+)"
)
_OF_SERVICE = re.compile(r"Message payload details|fabricmanager|persistence|nvidia-gridd", re.IGNORECASE)
_HEALTH = re.compile(
    r"(?:Detected an? )?(?P<word>WARNING|FAILURE|FAIL|ERROR)\w*(?: in health system |: +nhc: +Health check failed: +)"
    r"(?P<system>[\w ]+?): '?(?P<message>.*)"
)
_ROW = re.compile(
    r"(?P<system>[A-Z][\w ]*?) system:? *(?:\|)? *(?P<word>Warning|Failure|Fail|Error)\b[ -]*(?P<message>.*)"
)
_OVERALL = re.compile(r"\|\s*Overall Health\b[:|\s]*(?P<word>\w+)")
_GPU = re.compile(r"\bGPU(?: ID)?:? ?(?P<number>\d+)\b")
_GPU_ROW = re.compile(r"\|\s*(?:GPU(?: ID)?:?\s*|->\s*)?(?P<number>\d+)\s*\|")
_BORDER = re.compile(r"[|+=]+|(?<!\w)-+(?!\w)")
_LONGEST = 400
_IN_JSON = re.compile(r'"\w*(?:[mM]essage|MESSAGE|msg|detail|reason|error)s?" ?: ?"((?:[^"\\]|\\.)+)"')
"""The sentence in a line of JSON."""

_DCGM = re.compile(r"\bDCGM_FR_(?P<test>[A-Z]\w+)")
_FAULTS = re.compile(
    r"DBE|REPLAY|RETIRED|NVLINK|(?<!NON_)FATAL|FAULTY|MIS(?:MATCH|COMPARE)|REMAP|UNCONTAINED|BROKEN|XID|FABRIC|IMEX"
)
"""In the errors after which DCGM asks to isolate the GPU. The others are to be watched."""

_XID = re.compile(
    r"""(?<![A-Za-z\d/$-])(?:XID|Xid|xid)s?(?:[ _-]?(?i:errors?|codes?|events?|number)){0,2}(?:\{[^}]*\})?["'*`]*"""
    r"""(?: ?[:=#] ?| ?\(|\W?\s)["'*`(]*(?P<codes>\d{1,3}(?:(?:,| and| or| ?/|, and) (?:Xid )?\d{1,3})*)\b(?![.\d]*%)"""
    r"""|(?:XidCriticalError\s+True\b.*?\{"|XID_ERRORS\{[^}]*err_code=")(?P<condition>\d{1,3})\""""
)
_SAID = {
    "has fallen off the bus": re.compile(
        r"(?i:\bGPU\b.{,40}\bf[ae]ll(?:en|s)? (?:off|out of) (?:of )?the (?:PCIe? )?bus\b)|NVML\b[^|<]*: GPU is lost"
    ),
    "reset required": re.compile(r"(?:NVML\b[^|<]*: |[\"'`])GPU requires reset"),
}
"""What the driver would write, and how people, or programs with the text of NVML's error, say it without the Xid."""
_WRITTEN = re.compile(r"Xid \((?P<place>[^)]*)\): (?P<code>\d{1,3})")
"""An Xid as the driver writes it."""
_DENIED = re.compile(r"(?<![\w:.])(?:no|not|without|never|any|if|zero|0)\b[^.,;]{0,24}$", re.IGNORECASE)
_PCI = re.compile(r"PCI[^\w\n]{0,3}((?:[\da-f]{4,8}:)?[\da-f]{2}:[\da-f]{2})(?:\.[0-7])?\b", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<![\w:])([\da-f]{4,8}:[\da-f]{2}:[\da-f]{2})(?:\.[0-7])?\b", re.IGNORECASE)

_JETSON = re.compile(
    r"\bRAM \d+/\d+MB \(lfb .*(?:GR3D|EMC)_FREQ|# R\d\d \(release\), REVISION: |\bL4T \d\d\.\d.*Jetson"
    r"|^(?:jetson_clocks|nvp ?model)\b"
)
"""tegrastats, the release of Jetson Linux, jtop."""
_DEVICE = re.compile(
    r"Device: (?P<index>\d+), +(?P<name>[^,]+?), pciBusID: (?P<bus>[\da-f]+), pciDeviceID: (?P<device>[\da-f]+), "
    r"pciDomainID: ?(?P<domain>[\da-f]+)"
)
_PEERS = re.compile(
    r"Device=(?P<one>\d+) (?P<can>CAN(?:NOT)?) Access Peer Device=(?P<other>\d+)"
    r"|Peer access from .*\(GPU(?P<first>\d+)\) -> .*\(GPU(?P<second>\d+)\) ?: (?P<yes>Yes|No)"
)
_MATRIX = re.compile(r"\s*(P2P Connectivity|(?:Uni|Bi)directional P2P=\w+|P2P=\w+ Latency).* Matrix\b")
_CELLS = re.compile(r"\s*D\\D(?:\s+\d+)+\s*|\s*\d+(?:\s+\d+(?:\.\d+)?)+\s*")
"""A row of the matrices of p2pBandwidthLatencyTest."""
_SETTING = re.compile(r"Persistence mode for GPU (?P<number>\d+) is disabled")
_MIG = re.compile(r"MIG mode is in pending (?P<to>en|dis)able state for GPU (?P<address>[\da-fA-F:]+\.\d)")
_QUICK = re.compile(
    r"XID| the (?:PCIe? )?bus\b|[Xx]id(?:s?\b|_|C)|DCGM_FR_|icens|_FREQ|REVISION: |L4T|jetson_|nvp|pciBusID"
    r"|Peer|P2P|abric|NV_WARN|NVSwitch|ersistence|NVIDIA devices"
    r"|gridd|container-|Guest/|[vV]GPU|[Hh]ealth|\[tid |MIG mode|gres/gpu|(?i:not yet init|not_?ready)"
    r"|GPU (?:is lost|requires)"
)
"""A line without any of these says nothing."""


def begins(line: str) -> bool:
    """Whether something is found in the line."""
    return bool(_QUICK.search(line)) and (
        any(one.match(line) for one in (_LOG, _OVERALL, _MATRIX))
        or any(one.search(line) for one in (_HEALTH, _DCGM, _JETSON, _DEVICE, _PEERS, _SETTING, _MIG))
        or bool(_codes(line) or _said(line))
        or any(_state(tool, line) for tool in _SERVICES)
    )


def is_read(line: str) -> bool:
    """Whether the line is read, or says nothing that is not in those that are."""
    log = _LOG.match(line)
    if log and log["level"] == "WARNING":
        return False
    is_of_json = line.lstrip().startswith(('"body"', '"header"', '"Health Mon'))
    return begins(line) or is_of_json or bool(_OF_SERVICE.search(line) or _CELLS.fullmatch(line))


def telling_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines in which something is found that the driver's own lines among them do not say, with their tables.

    Lines that name an address follow, for what is found without one.
    """
    written: dict[int, str] = {}
    for found in (found for line in lines for found in _WRITTEN.finditer(line)):
        written[int(found["code"])] = written.get(int(found["code"]), "") + found["place"].lower()
    said = tuple(_telling_lines(lines, written))
    return (*said, *(line for line in lines if said and _PCI.search(line) and line not in said))


def _telling_lines(lines: Sequence[str], written: Mapping[int, str]) -> Iterator[str]:
    is_table = is_matrix = False
    for line in lines:
        is_table = bool(_OVERALL.match(line)) or (is_table and line.lstrip().startswith(("|", "+")))
        is_matrix = bool(_MATRIX.match(line)) or (is_matrix and bool(_CELLS.fullmatch(line)))
        place = _PCI.search(line) or _ADDRESS.search(line)
        known = any(code in written and not (place and place[1].lower() not in written[code]) for code in _codes(line))
        if is_table or is_matrix or (begins(line) and not known):
            yield line


def parse(section: Section) -> Part:
    """Everything that is found in the lines."""
    lines = section.lines
    services = [result for tool in _SERVICES for result in _service(tool, lines)]
    results = tuple(dict.fromkeys((*services, *_logged(lines), *_watched(lines), *_table(lines), *_dcgm(lines))))
    groups = (*([Diagnostics(results=results)] if results else []), *_log(lines, section.file))
    if any(map(_JETSON.search, lines)):
        return section.part(groups=groups, gpus=(GpuPart(facts={"name": "Jetson (nvgpu)"}),))
    gpus, pairs = (*_devices(lines), *_changing(lines)), _pairs([*lines, *_connected(lines)])
    if len({gpu.facts.get("name") for gpu in gpus}) > 1:
        # CUDA puts the fastest GPU first, so its numbers are not nvidia-smi's.
        return section.part(groups=groups, gpus=tuple(replace(gpu, index=None) for gpu in gpus))
    others = sorted({index for pair in pairs for index in pair} - {gpu.index for gpu in gpus})
    return section.part(groups=groups, gpus=(*gpus, *(GpuPart(index=index) for index in others)), pairs=pairs)


def _state(tool: str, line: str) -> DiagnosticStatus | None:
    return next((status for status, pattern in _SERVICES[tool] if pattern.search(line)), None)


def _service(tool: str, lines: Sequence[str]) -> Iterator[Diagnostic]:
    states = [(state, line) for line in lines if (state := _state(tool, line))]
    if not states:
        return
    idle = next(((state, line) for state, line in states if state == "skip"), None)
    status, line = idle or states[-1]
    differing = next((text for state, text in states if state == status and _MISMATCH.search(text)), None)
    message = "nothing to manage on this machine" if idle else " ".join(_sentence(differing or line).split())
    yield Diagnostic(
        tool=tool,
        test="version check against the driver" if differing else _TESTS.get(tool, "service"),
        subject=tool if tool == _FABRIC else "node",
        status="pass" if idle else status,
        message=message,
    )


def _sentence(line: str) -> str:
    found = _IN_JSON.findall(line.replace('\\"', '"'))
    return str(found[-1] if found else line).strip()[:_LONGEST]


def _logged(lines: Sequence[str]) -> Iterator[Diagnostic]:
    """The errors in the fabric manager's log. A log without errors shows nothing of the time before and after it."""
    for log in filter(None, map(_LOG.match, lines)):
        if switch := _SWITCH_ERROR.search(log["message"]):
            yield Diagnostic(
                tool=_FABRIC,
                test=f"SXid {switch['code']}",
                subject=f"NVSwitch {sysfs_bus_id(switch['address']) or switch['address']}",
                status="fail" if switch["word"] == "fatal" else "warn",
                message=switch[0],
            )
        elif log["level"] in {"ERROR", "CRITICAL", "FATAL"}:
            yield Diagnostic(tool=_FABRIC, test="log", subject=_FABRIC, status="warn", message=log["message"])


def _watched(lines: Sequence[str]) -> Iterator[Diagnostic]:
    for found in filter(None, map(_SETTING.search, lines)):
        yield Diagnostic(
            tool="dcgmi diag",
            test="persistence mode",
            subject=f"GPU {found['number']}",
            status="fail",
            message=found[0],
        )
    for found in filter(None, map(_HEALTH.search, lines)):
        yield _of_health(found["system"], found["word"], found["message"].strip("' "), None)


def _of_health(system: str, word: str, message: str, number: str | None) -> Diagnostic:
    named = _GPU.search(message)
    subject = f"GPU {named['number']}" if named else f"GPU {number}" if number else "node"
    status: DiagnosticStatus = "warn" if word.lower() == "warning" else "fail"
    tool = "NHC" if system.startswith("check_") else "dcgmi health"
    return Diagnostic(tool=tool, test=system, subject=subject, status=status, message=message[:_LONGEST])


def _table(lines: Sequence[str]) -> Iterator[Diagnostic]:
    """The rows of ``dcgmi health -c``. A message goes on in the rows below it."""
    start = next((place for place, line in enumerate(lines) if _OVERALL.match(line)), None)
    if start is None:
        return
    number: str | None = None
    texts: list[tuple[str | None, str]] = []
    for line in lines[start + 1 :]:
        row = _GPU_ROW.match(line)
        number = row["number"] if row else number
        text = " ".join(_BORDER.sub(" ", line).split())
        if _ROW.search(line):
            texts.append((number, text))
        elif texts and text and not row:
            texts[-1] = (texts[-1][0], f"{texts[-1][1]} {text}")
    for owner, text in texts:
        if found := _ROW.search(text):
            yield _of_health(found["system"], found["word"], found["message"], owner)
    overall = _OVERALL.match(lines[start])
    if overall and overall["word"].lower() == "healthy":
        yield Diagnostic(tool="dcgmi health", test="overall", subject="node", status="pass")
    elif not texts:
        yield Diagnostic(tool="dcgmi health", test="overall", subject="node", status="unknown")


def _dcgm(lines: Sequence[str]) -> Iterator[Diagnostic]:
    for text, named in ((line, named) for line in lines for named in _DCGM.finditer(line)):
        if named["test"] == "XID_ERROR" and _codes(text):
            continue
        gpu, is_mild = _GPU.search(text), re.search(r"\bWARN|isFatal\W+false", text)
        yield Diagnostic(
            tool="DCGM",
            test=named["test"].replace("_", " ").lower(),
            subject=f"GPU {gpu['number']}" if gpu else "node",
            status="fail" if _FAULTS.search(named["test"]) and not is_mild else "warn",
            message=_sentence(text),
        )


def _codes(line: str) -> list[int]:
    """The Xids that a sentence names. What the driver itself wrote is read as a kernel log."""
    if "NVRM" in line or _WRITTEN.search(line):
        return []
    named = (match for match in _XID.finditer(line) if not _DENIED.search(line[: match.start()]))
    texts = (match["codes"] or match["condition"] for match in named)
    return [code for text in texts for code in map(int, re.findall(r"\d+", text)) if code]


def _said(line: str) -> list[str]:
    """What the sentence says of a GPU, without an Xid."""
    found = {} if "NVRM" in line or _codes(line) else {said: words.search(line) for said, words in _SAID.items()}
    return [said for said, match in found.items() if match and not _DENIED.search(line[: match.start()])]


def _log(lines: Sequence[str], file: str) -> Iterator[KernelLog]:
    """The Xids as the driver would write them, at the address in the line, or at the only one in the text."""
    named = {found[1].lower() for line in lines for found in _PCI.finditer(line)}
    texts: list[str] = []
    for line in lines:
        own = _PCI.search(line) or _ADDRESS.search(line)
        place = f"PCI:{own[1] if own else min(named)}" if own or len(named) == 1 else "not named"
        texts += [f"NVRM: Xid ({place}): {code}, {_sentence(line)}" for code in _codes(line)]
        texts += [f"NVRM: GPU {place} {said}, {_sentence(line)}" for said in _said(line)]
    if texts:
        log = parse_log(texts, source=file)
        yield replace(log, events=tuple(replace(event, text=event.text.partition(", ")[2]) for event in log.events))


def _devices(lines: Iterable[str]) -> Iterator[GpuPart]:
    """The GPUs of a test of peer access, with CUDA's numbers."""
    for found in filter(None, map(_DEVICE.search, lines)):
        bus_id = sysfs_bus_id(f"{found['domain']:0>4}:{found['bus']:0>2}:{found['device']:0>2}.0")
        yield GpuPart(index=int(found["index"]), bus_id=bus_id, facts={"name": found["name"]})


def _changing(lines: Iterable[str]) -> Iterator[GpuPart]:
    """The GPUs whose MIG mode changes at the next reset."""
    for found in filter(None, map(_MIG.search, lines)):
        wanted = found["to"] == "en"
        facts = {"mig_mode": not wanted, "mig_mode_pending": wanted}
        yield GpuPart(bus_id=sysfs_bus_id(found["address"]), facts=facts)


def _connected(lines: Iterable[str]) -> Iterator[str]:
    """The matrix of peer access, in the words of the lines above it."""
    title: re.Match[str] | None = None
    for line in lines:
        title = _MATRIX.match(line) or title
        if title and title[1] == "P2P Connectivity" and _CELLS.fullmatch(line) and "D" not in line:
            row, *cells = line.split()
            for place, cell in enumerate(cells):
                yield f"Device={row} {'CANNOT' if cell == '0' else 'CAN'} Access Peer Device={place}"


def _pairs(lines: Iterable[str]) -> Mapping[tuple[int, int], PairPart]:
    """The access of each pair, which is missing where one direction is."""
    found: dict[tuple[int, int], PairPart] = {}
    for peers in filter(None, map(_PEERS.search, lines)):
        low, high = sorted(int(peers[name] or peers[other]) for name, other in (("one", "first"), ("other", "second")))
        access = "OK" if peers["can"] == "CAN" or peers["yes"] == "Yes" else "NS"
        if low != high and found.get((low, high), PairPart()).facts.get("p2p_read") != "NS":
            found[low, high] = PairPart(facts={"p2p_read": access, "p2p_write": access})
    return found
