"""Every way to write a line of the kernel log gives the same message."""

import json
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.facts import KernelLog, KernelLogEvent
from kdoctor.probes.kernel_lines import is_kernels, split_line
from kdoctor.probes.kernel_log import LogReader, parse_log
from kdoctor.probes.kernel_messages import RELEVANT, SIGNS
from kdoctor_recordings.facts import Diagnostics
from kdoctor_recordings.importer import import_files

XID = "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response"

FORMS = {
    "bare": "{}",
    "dmesg": "[ 1843.308145] {}",
    "Talos": "10.0.0.7: kern: warning: [2026-04-22T21:27:51.288830314Z]: {}",
    "a tool of its own": "node17 | gpu-watch(7) says {}",
    "dmesg -T": "[Sun Feb 23 16:24:18 2025] {}",
    "dmesg -H, first line of a minute": "[Feb23 16:24] {}",
    "dmesg -H": "[  +0.000012] {}",
    "dmesg -r": "<4>[ 1843.308145] {}",
    "dmesg -x": "kern  :warn  : [ 1843.308145] {}",
    "dmesg -x --time-format=iso": "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 {}",
    "dmesg -xT": "kern  :err   : [Sun Feb 23 16:24:18 2025] {}",
    "dmesg --time-format=iso": "2024-11-15T05:39:15,491363+00:00 {}",
    "dmesg, CONFIG_PRINTK_CALLER": "[ 1843.308145][ T1234] {}",
    "journalctl": "Feb 23 16:24:18 node17 kernel: {}",
    "journalctl -o short-precise": "Feb 23 16:24:18.123456 node17 kernel: {}",
    "journalctl -o short-full": "Sun 2025-02-23 16:24:18 UTC node17 kernel: {}",
    "journalctl -o short-iso": "2025-02-23T16:24:18+0000 node17 kernel: {}",
    "journalctl -o short-iso-precise": "2025-02-23T16:24:18.123456+00:00 node17 kernel: {}",
    "journalctl -o short-monotonic": "[ 1843.308145] node17 kernel: {}",
    "journalctl -o short-unix": "1740327858.123456 node17 kernel: {}",
    "journalctl -o verbose": "Sun 2025-02-23 16:24:18.123456 UTC [s=0a1b;i=2c]\n    _TRANSPORT=kernel\n    MESSAGE={}",
    "journalctl -o json": '{{"_TRANSPORT":"kernel","__MONOTONIC_TIMESTAMP":"1843308145","MESSAGE":"{}"}}',
    "journalctl -o json-pretty": '{{\n\t"_TRANSPORT" : "kernel",\n\t"MESSAGE" : "{}"\n}}',
    "journalctl -o export": "__CURSOR=s=0a1b\n__MONOTONIC_TIMESTAMP=1843308145\n_TRANSPORT=kernel\nMESSAGE={}\n",
    "the name of the kernel alone": "kernel: {}",
    "the name of the kernel alone, without space": "kernel:{}",
    "pstore": "Oops#1 Part1\n<4>[ 1843.308145] {}",
    "syslog, RFC 3164": "<4>Feb 23 16:24:18 node17 kernel: [ 1843.308145] {}",
    "syslog, RFC 5424": "<4>1 2025-02-23T16:24:18.123456+00:00 node17 kernel - - - [ 1843.308145] {}",
    "syslog with a year": "2025-02-23 16:24:18 node17 kernel: {}",
    "a Chinese locale": "4月 19 22:36:49 node17 kernel: {}",
    "a German locale": "Mär 19 22:36:49 node17 kernel: {}",
    "a French locale": "dimanche 23 février 2025, 16:24:18 node17 kernel: {}",
    "a French locale, short": "févr. 23 16:24:18 node17 kernel: {}",
    "dmesg -T, a German locale": "[So Feb 23 16:24:18 2025] {}",
    "dmesg -T, a French locale": "[dim. févr. 23 16:24:18 2025] {}",
    "dmesg -T, a Chinese locale": "[日 2月  23 16:24:18 2025] {}",
    "dmesg -T, a Russian locale": "[\u0412\u0441 \u0444\u0435\u0432 23 16:24:18 2025] {}",
    "dmesg --json": '{{\n   "dmesg": [\n      {{\n         "pri": 4,\n         "msg": "{}"\n      }}\n   ]\n}}',
    "syslog-ng with a year": "2025 Feb 23 16:24:18 node17 kernel: [ 1843.308145] {}",
    "fluentd": '{{"time":"2025-02-23T16:24:18Z","ident":"kernel","message":"{}"}}',
    "containerd": '{{"log":"{}","stream":"stdout"}}',
    "logfmt": 'time="2025-02-23T16:24:18Z" level=warning msg="{}"',
    "a row of CSV": '"2025-02-23T16:24:18Z","node17","{}"',
    "columns": "node17\tkernel\t{}",
    "a table in Markdown": "| 16:24 | `{}` |",
    "salt": "node17:\n    [ 1843.308145] {}",
    "ansible": "node17 | CHANGED | rc=0 >>\n[ 1843.308145] {}",
    "socklog": "2025-02-23_16:24:18.95768 kern.warn: {}",
    "a journal without its host": "Feb 23 16:24:18 kernel: {}",
    "dmesg -x in code": "`kern:  notice: [2025-02-23T16:24:18.957686413Z]: {}`",
    "a sentence": "Since yesterday, we see this: {}",
    "a serial console": "[ 1843.308145] {}\r\r",
    "a quotation": "> [ 1843.308145] {}",
    "a quotation of a quotation": "> > [ 1843.308145] {}",
    "indented": "    [ 1843.308145] {}",
    "a list": "- [ 1843.308145] {}",
    "code in a text": "`[ 1843.308145] {}`",
    "docker logs -t": "2025-02-23T16:24:18.123456789Z [ 1843.308145] {}",
    "grep -H": "/var/log/kern.log:Feb 23 16:24:18 node17 kernel: [ 1843.308145] {}",
    "grep -n": "123:[ 1843.308145] {}",
    "an escape sequence": "\x1b[32m[ 1843.308145] \x1b[0m\x1b[33m{}\x1b[0m",
    "the title of a terminal": "\x1b]0;me@node17\x07[ 1843.308145] {}",
    "/dev/kmsg": "4,812,1843308145,-;{}",
}


def read(folder: Path, data: bytes) -> tuple[KernelLogEvent, ...]:
    (folder / "a file").write_bytes(data)
    log = import_files([folder / "a file"]).facts[KernelLog]
    assert isinstance(log, KernelLog)
    return tuple(event for event in log.events if event.kind != "crash")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_form_of_a_line_is_imported_with_the_same_facts(tmp_path: Path, form: str) -> None:
    (found,) = read(tmp_path, form.format(XID).encode() + b"\n")
    assert (found.kind, found.code, found.bus_id) == ("xid", 119, "0000:9b:00.0")
    assert found.text.rstrip('",') == XID


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_and_windows_line_ends_change_nothing(tmp_path: Path, form: str, codec: str) -> None:
    text = form.format(XID).replace("\n", "\r\n") + "\r\n"
    (found,) = read(tmp_path, text.encode(codec))
    assert (found.code, found.text.rstrip('",')) == (119, XID)


@pytest.mark.parametrize("text", [XID, f"\x1b[31m{XID}\x1b[0m"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_message_of_bytes_in_json(tmp_path: Path, text: str, separators: tuple[str, str]) -> None:
    line = json.dumps({"MESSAGE": list(text.encode()), "_TRANSPORT": "kernel"}, separators=separators)
    assert split_line(line).text == XID
    reader = LogReader()
    reader.read_block(b'{"MESSAGE":"usb 1-1: new device"}\n')
    reader.read_block(f"{line}\n".encode())
    assert [event.code for event in reader.log(source="x").events] == [119]
    assert [event.code for event in read(tmp_path, f"{line}\n".encode())] == [119]


def test_message_of_bytes_over_several_lines_is_unclassified(tmp_path: Path) -> None:
    lines = '{\n\t"_TRANSPORT" : "kernel",\n\t"MESSAGE" : [\n\t\t78,\n\t\t86\n\t]\n}\n'
    (tmp_path / "log").write_text(f"[    1.000000] usb 1-1: new device\n{lines}", encoding="utf-8")
    log = import_files([tmp_path / "log"]).facts[KernelLog]
    assert isinstance(log, KernelLog)
    assert log.unclassified == 1


def test_message_that_quotes_the_log_is_no_log(tmp_path: Path) -> None:
    found = {"name": "pcie", "results": [{"gpu_ids": "0", "status": "Fail", "info": XID}]}
    document = {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [found]}]}}
    (tmp_path / "diag").write_text(json.dumps(document, indent=1), encoding="utf-8")
    facts = import_files([tmp_path / "diag"]).facts
    assert KernelLog not in facts
    assert Diagnostics in facts


@cases(
    "kernel:         5.15.0-185-generic",
    "[    12.345] (II) LoadModule: nvidia",
    "2026-01-05T10:00:00 INFO training step 7 of 10",
    "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:19:00.0 Off |                    0 |",
    "    Product Name                          : NVIDIA H100",
    "3b:00.0 3D controller: NVIDIA Corporation GA100",
    "# a comment about nvidia",
    "nvidia_uvm           1523712  0",  # lsmod
    '{"message": "step 7 of 10", "level": "info"}',
)
def test_lines_of_others_are_not_the_kernels(line: str) -> None:
    assert not is_kernels(line)


RELEVANT_LINES = [
    XID,
    "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 32",
    "nvidia-uvm: request_free_mem_region() err -34",
    "nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible",
    "nouveau 0000:01:00.0: fifo: fault 01",
    "pcieport 0000:00:03.1: AER: Corrected error received: 0000:01:00.0",
    "nvme 0000:02:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0",
    "mce: [Hardware Error]: Machine check events logged",
    "DMAR: [DMA Write] Request device [02:00.0] fault addr cd139000",
    "AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x12]",
    "arm-smmu-v3 arm-smmu-v3.0.auto: event 0x10 received:",
    "arm-smmu-v3 2b400000.iommu: event 0x10 received:",
    '"MESSAGE" : [',
    "arm-smmu 12c00000.iommu: Unhandled context fault: fsr=0x402",
    "Loading of unsigned module is rejected",
    "Loading of module with unavailable key is rejected",
    "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    "Kernel panic - not syncing: Fatal exception",
    "BUG: unable to handle page fault for address: ffff",
    "BUG: soft lockup - CPU#3 stuck for 22s!",
    "pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x3b00",
    "Panic#1 Part2",
    "Oops#1 Part1",
    "Linux version 5.15.0-112-generic",
    "python[7]: segfault at 10 ip 0a sp 0b error 4 in libnccl.so.2[7f+5d]",
]


@pytest.mark.parametrize("line", RELEVANT_LINES)
def test_quick_search_misses_no_relevant_line(line: str) -> None:
    assert RELEVANT.search(line)
    block = f"usb 1-1: new device\n{line}\nusb 1-1: gone\n".encode()
    assert any(sign in block.translate(None, b"0123456789") for sign in SIGNS)


def test_blocks_and_lines_give_the_same_log() -> None:
    lines = ["[ 1.000000] usb 1-1: new device", *(f"[ 2.000000] {line}" for line in RELEVANT_LINES)] * 3
    lines += [f"[ {second}.000000] usb 1-{second}: new device" for second in range(3, 2000)]
    reader = LogReader()
    for start in range(0, len(lines), 7):
        reader.read_block("".join(f"{line}\n" for line in lines[start : start + 7]).encode())
    assert reader.log(source="x") == parse_log(lines, source="x")


def test_long_log_is_read_in_blocks(tmp_path: Path) -> None:
    other = "".join(f"[ {second:5}.000000] usb 1-1: new device number {second}\n" for second in range(100_000, 220_000))
    (tmp_path / "log").write_text(f"{other}[220000.000000] {XID}\n{other}", encoding="utf-8")
    log = import_files([tmp_path / "log"]).facts[KernelLog]
    assert isinstance(log, KernelLog)
    assert (log.lines, [event.code for event in log.events]) == (240_001, [119])


@cases(
    ("[    0.000000] Linux version 5.15.0-112-generic", True),
    ("Feb 23 16:24:18 node17 kernel: Linux version 5.15.0-112-generic", True),
    ("[ 1843.308145] usb 1-1: new device", None),
    ("Feb 23 16:24:18 node17 kernel: usb 1-1: new device", None),
)
def test_excerpt_is_not_complete(line: str, *, complete: bool | None) -> None:
    assert parse_log([line, XID], source="x").complete is complete
