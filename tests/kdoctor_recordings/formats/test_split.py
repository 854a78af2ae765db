import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import (
    LOG,
    LSPCI,
    NVLINK,
    TABLE,
    TOPOLOGY,
    group,
    imported,
    imported_gpus,
    query,
    xml,
)
from kdoctor.errors import UsageError
from kdoctor.facts import KernelLog, PciDevices
from kdoctor_recordings.formats import pasted, split
from kdoctor_recordings.formats.part import Section
from kdoctor_recordings.formats.split import decode, read_sections
from kdoctor_recordings.importer import import_files

RULE = "#" * 80
TWO_GPUS = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-13\nGPU1\tSYS\t X \t14-27\n"
ACCESS = " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n"


def sections(folder: Path, text: str) -> tuple[Section, ...]:
    path = folder / "dump.jpeg"
    path.write_text(text, encoding="utf-8")
    return read_sections(path)


def kinds(folder: Path, text: str) -> list[str]:
    return [section.kind for section in sections(folder, text)]


@cases(
    (query("3B"), "nvidia-smi -q"),
    (query("3B").partition("Attached GPUs : 1\n")[2], "nvidia-smi -q"),
    (xml("3B"), "nvidia-smi -q -x"),
    (TABLE, "nvidia-smi"),
    (TOPOLOGY, "nvidia-smi topo -m"),
    (ACCESS, "nvidia-smi topo -p2p"),
    (NVLINK, "nvidia-smi nvlink -s"),
    (LSPCI, "lspci -vvv"),
    (LOG, "kernel log"),
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1  Tue\n", "/proc/driver/nvidia/version"),
    ("nouveau 2306048 1\n", "lsmod"),
    ("Failed to initialize NVML: Driver/library version mismatch\n", "nvidia-smi's failure"),
    ("[Mon Jan  5 10:00:00 2026] NVRM: loading\n", "kernel log"),
    ("2026-01-05T10:00:00,123456+00:00 nvidia 0000:3b:00.0: enabling device\n", "kernel log"),
    ("2026-01-05T10:00:00+0000 node7 kernel: something\n", "kernel log"),
    ("Jan 05 10:00:00 node7 kernel: [ 12.000001] something\n", "kernel log"),
    ("6,1234,56789012,-;something\n", "kernel log"),
    ("kern  :info  : [   12.345678] something\n", "kernel log"),
    ("kernel: pcieport 0000:00:1b.2: AER: Uncorrectable (Fatal) error message received\n", "kernel log"),
    ("watchdog: BUG: soft lockup - CPU#40 stuck for 26s! [python3:510]\n", "kernel log"),
)
def test_format_is_recognized_by_content(tmp_path: Path, text: str, kind: str) -> None:
    assert kinds(tmp_path, text) == [kind]


DIAGNOSIS = json.dumps({"DCGM GPU Diagnostic": {"test_categories": []}}, indent=2)
QUOTING = {"DCGM GPU Diagnostic": {"test_categories": [{"results": [{"warnings": LOG.splitlines()[-1]}]}]}}


@cases(
    (
        f"me@node7:~$ nvidia-smi topo -m\n{TWO_GPUS}me@node7:~$ sudo lspci -vvv\n{LSPCI}root@node7:~# dmesg\n{LOG}",
        ["nvidia-smi topo -m", "lspci -vvv", "kernel log"],
    ),
    (
        query("3B") + TABLE + xml("3B") + LOG + LSPCI + query("3B"),
        ["nvidia-smi -q", "nvidia-smi", "nvidia-smi -q -x", "kernel log", "lspci -vvv", "nvidia-smi -q"],
    ),
    (f"\tGPU0\tCPU Affinity\nGPU0\t X \t0-13\n{ACCESS}", ["nvidia-smi topo -m", "nvidia-smi topo -p2p"]),
    ("\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n", ["nvidia-smi topo -m"]),  # without affinities
    *(
        (f"{xml('3B')}{between}{LSPCI}", ["nvidia-smi -q -x", "lspci -vvv"])
        for between in ("", "\n", "\n\n\n\n\n", "a line\n" * 10)
    ),
    (xml("3B").replace("<fan_speed>", f"\n{NVLINK}{LOG}<fan_speed>"), ["nvidia-smi -q -x"]),
    (json.dumps(QUOTING, indent=2), ["dcgmi diag"]),
    (f"{DIAGNOSIS}\n{LOG}", ["dcgmi diag", "kernel log"]),
    (f"{NVLINK}index, name\n0, NVIDIA Test 40GB\n", ["nvidia-smi nvlink -s", "nvidia-smi --query-gpu"]),
    (f"{NVLINK}index\n0\n", ["nvidia-smi nvlink -s"]),
    (f"{NVLINK}0, 00000000:3B:00.0\n", ["nvidia-smi nvlink -s"]),  # a row without its header
    ("index\n0, 00000000:3B:00.0\n", ["nvidia-smi --query-gpu"]),
    ("nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader\n1 %\n", ["nvidia-smi --query-gpu"]),
    (f"$ nvidia-smi --query-compute-apps=pid --format=csv\nindex, name\n0, x\n$ dmesg\n{LOG}", ["kernel log"]),
)
def test_dumps_of_a_file(tmp_path: Path, text: str, found: list[str]) -> None:
    assert kinds(tmp_path, text) == found


@cases(
    "",
    "hello\n",
    "2026-01-05T10:00:00 INFO training step 7 of 10\n",
    "<html><body>nvidia_smi_log</body></html>\n",
    '{"schema": "kdoctor/snapshot/v1"}\n',
    '{"overall_severity": "CRITICAL", "check_verdicts": []}\n',
    '<system version="1">\n  <cpu numaid="0"/>\n</system>\n',
    "GPU0\n",
    "\x00\x01\x02",
)
def test_unknown_format_is_refused_with_supported_formats(tmp_path: Path, text: str) -> None:
    (tmp_path / "dump").write_bytes(text.encode())
    with pytest.raises(UsageError) as error:
        import_files([tmp_path / "dump"])
    assert str(tmp_path / "dump") in error.value.message
    assert error.value.hint is not None
    assert "nvidia-smi" in error.value.hint
    assert "lspci -vvv" in error.value.hint


@cases(
    ('<?xml version="1.0"?>\n<topology version="3.0"><object type="Machine"/></topology>\n', "XML"),
    ("PK\x03\x04", "an archive"),
    ("CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 200\n", "InfiniBand"),
    ("    Inforom Version\n        OEM Object                        : 2.0\n", "a part of nvidia-smi -q"),
    ("BZh91AY&SY", "damaged compressed data"),
)
def test_known_unsupported_format_is_named(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "dump").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=what):
        import_files([tmp_path / "dump"])


def test_capture_of_several_commands(tmp_path: Path) -> None:
    capture = "\n".join(
        [
            RULE,
            "# A capture",
            RULE,
            f"{RULE}\n# a :: help\n# $ nvidia-smi -h\n{RULE}\nNVIDIA System Management Interface -- v590\n",
            f"{RULE}\n# a :: matrix\n# $ nvidia-smi topo -m\n{RULE}\n{TWO_GPUS}",
            f"{RULE}\n# a :: access\n# $ nvidia-smi topo -p2p w\n{RULE}\n \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n",
            f"{RULE}\n# a :: everything\n# $ nvidia-smi -q\n{RULE}\n{query('3B', 'AF')}",
            f"{RULE}\n# a :: symbols\n# $ readelf libnvidia-ml.so.1\n{RULE}\nnvmlInit\n",
        ]
    )
    gpus = imported_gpus(tmp_path, capture)
    assert [gpu.bus_id for gpu in gpus.devices] == ["0000:3b:00.0", "0000:af:00.0"]
    assert (gpus.pairs[0].level, gpus.pairs[0].p2p_read, gpus.pairs[0].p2p_write) == ("SYS", None, "OK")
    # The next section ends the list of processes, although no empty line separates them.
    assert gpus.devices[1].processes is not None


def test_lines_before_first_kernel_line_belong_to_log(tmp_path: Path) -> None:
    text = "2026-01-05T10:00:00,000000+00:00 a line that any program may write\n" * 3
    text += "2026-01-05T10:00:00,000001+00:00 NVRM: Xid (PCI:0000:3b:00): 31, pid=1\n"
    log = group(imported(tmp_path, text).facts, KernelLog)
    assert log.lines == 4


@cases(
    ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure\n", "driver-not-loaded"),
    ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178\n", "library-mismatch"),
    ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", "library-absent"),
    ("Failed to initialize NVML: Insufficient Permissions\n", "no-permission"),
    ("Failed to initialize NVML: Unknown Error\n", "failed"),
    ("bash: nvidia-smi: command not found\n", "library-absent"),
    ("zsh: command not found: nvidia-smi\n", "library-absent"),
    ("-bash: /usr/bin/nvidia-smi: No such file or directory\n", "library-absent"),
    ("Command 'nvidia-smi' not found, but can be installed with:\napt install nvidia-utils-535\n", "library-absent"),
    ("pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.\n", "library-mismatch"),
    ("NVIDIA kernel module missing. Falling back to nouveau.\n", "driver-not-loaded"),
    ("Driver/library version mismatch \u2014 failed to initialize NVML\n", "library-mismatch"),
    ("WARNING: The NVIDIA Driver was not detected. GPU functionality will not be available.\n", "library-absent"),
    ('docker: Error response: could not select device driver "" with capabilities: [[gpu]].\n', "library-absent"),
    ("nvidia-container-cli: mount error: bpf_prog_query failed: operation not permitted\n", "no-permission"),
    ("slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory\n", "failed"),
    ("cudaGetDeviceCount returned 999\n", "failed"),
    ("2022/05/13 23:09:23 Failed to initialize NVML: could not load NVML library.\n", "library-absent"),
    ("error visiting device: error getting device memory info: Insufficient Permissions\n", "no-permission"),
    ("NVIDIA-SMI has failed because it couldn\u2018t communicate with the NVIDIA driver.\n", "driver-not-loaded"),
    ("E cuda_diagnostics.cc:303] kernel version 384.130.0 does not match DSO version 375.66.0\n", "library-mismatch"),
    ("Error 803: system has unsupported display driver / cuda driver combination\n", "library-mismatch"),
    ("'nvidia-smi' is not recognized as an internal or external command,\nor program\n", "library-absent"),
)
def test_failure_of_nvidia_smi_sets_state(tmp_path: Path, text: str, state: str) -> None:
    gpus = imported_gpus(tmp_path, text)
    assert (gpus.state, gpus.devices, gpus.count) == (state, (), None)
    assert gpus.error == " ".join(text.split()).replace("\u2018", "'")


def test_output_without_state_is_refused_with_a_better_command(tmp_path: Path) -> None:
    samples = (
        "# gpu    pwr  gtemp     sm    mem\n# Idx      W      C      %      %\n    0     69     41      0      0\n"
    )
    with pytest.raises(UsageError, match="use nvidia-smi -q"):
        imported(tmp_path, samples)


@pytest.mark.parametrize("dump", [TABLE, query("3B", "5E")])
def test_corrupted_inforom_belongs_to_its_gpu(tmp_path: Path, dump: str) -> None:
    gpus = imported_gpus(tmp_path, f"{dump}WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n")
    assert [gpu.errors.get("inforom") for gpu in gpus.devices] == ["infoROM is corrupted", None]


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress, lzma.compress])
def test_compressed_report(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "report").write_bytes(pack(LSPCI.encode() + LOG.encode()))
    assert set(import_files([tmp_path / "report"]).facts) == {PciDevices, KernelLog}
    (tmp_path / "report").write_bytes(pack(LSPCI.encode())[:-20])
    with pytest.raises(UsageError, match="damaged compressed data"):
        import_files([tmp_path / "report"])


def test_named_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.close(os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK))
    with pytest.raises(UsageError, match="named pipe"):
        read_sections(tmp_path / "pipe")


def test_dump_before_a_command_is_whole_in_a_file_that_is_cut_off(tmp_path: Path) -> None:
    table = "index, temperature.gpu\n0, 34\n1, 35\n"
    gpus = imported_gpus(tmp_path, f"{table}$ dmesg\n{LOG}[  300.0] NVRM: X")
    assert [gpu.temperature_c for gpu in gpus.devices] == [34, 35]


def test_line_of_the_largest_length_is_kept(tmp_path: Path) -> None:
    for length, kept in ((pasted.LONGEST_LINE, True), (pasted.LONGEST_LINE + 1, False)):
        line = "\t" + "x" * (length - 1)
        (section,) = sections(tmp_path, f"{LSPCI.rstrip()}\n{line}\n")
        assert section.lines[-1] == (line if kept else "")


def test_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="symbolic links"):
        read_sections(tmp_path / "loop")


@pytest.mark.parametrize("mark", ["> ", ">> ", "> > ", ">"])
@pytest.mark.parametrize("marked", [10, 9, 1])
def test_marks_of_quoted_lines_are_removed(mark: str, marked: int) -> None:
    lines = [f"{mark if place < marked else ''}line {place}" for place in range(10)]
    plain = [f"line {place}" for place in range(10)]
    assert pasted.unquote([*lines, "", "  "]) == [*plain, "", "  "]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_file_at_the_limit_is_read_and_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "dump"
    path.write_bytes(pack(LSPCI.encode() * 20))
    monkeypatch.setattr(split, "_MOST_BYTES", len(LSPCI) * 20)
    assert len(read_sections(path)) == 1
    monkeypatch.setattr(split, "_MOST_BYTES", len(LSPCI) * 20 - 1)
    with pytest.raises(UsageError, match="the limit for a dump"):
        read_sections(path)


def test_numbers_of_lines_are_those_of_the_file(tmp_path: Path) -> None:
    text = f"\nfirst\n{RULE}\nsecond\n{TABLE}$ lspci -vvv\nthird\n{LSPCI}$ dmesg\n{LOG}last\n"
    table, lspci, log = sections(tmp_path, text)
    start = 4 + TABLE.index("+--") // len("Mon Jan  5 10:00:00 2026\n")
    assert (table.lines[0][:12], table.first) == ("| NVIDIA-SMI", start + 2)
    assert [number for number, text in table.skipped if text in ("first", "second")] == [2, 4]
    third = 4 + TABLE.count("\n") + 2
    assert (lspci.first, lspci.skipped) == (third + 1, ((third, "third"),))
    assert log.first == third + LSPCI.count("\n") + 2
    assert log.lines[-1] == "last"


@cases(
    (TABLE, [(True, False)]),
    (f"{TABLE}\n", [(True, True)]),
    (TABLE.rstrip("\n"), [(False, False)]),
    (TABLE + NVLINK, [(True, True), (True, False)]),
    (f"{TABLE}$ nvidia-smi nvlink -s\n{NVLINK}".rstrip("\n"), [(True, True), (False, False)]),
)
def test_last_dump_of_a_file_may_be_incomplete(tmp_path: Path, text: str, states: list[tuple[bool, bool]]) -> None:
    assert [(section.whole, section.ended) for section in sections(tmp_path, text)] == states


@pytest.mark.parametrize(("lines", "is_found"), [(399, True), (400, False)])
def test_name_that_identifies_json_is_near_its_start(tmp_path: Path, lines: int, *, is_found: bool) -> None:
    text = "{" + "\n" * lines + '"DCGM Diagnostic": {}}\n'
    if is_found:
        assert kinds(tmp_path, text) == ["dcgmi diag"]
    else:
        with pytest.raises(UsageError):
            kinds(tmp_path, text)


@pytest.mark.parametrize(("empty", "first"), [(0, 1), (1, 1), (2, 4)])
def test_declaration_belongs_to_xml_that_begins_within_three_lines(tmp_path: Path, empty: int, first: int) -> None:
    declaration, _, rest = xml("3B").split("\n", maxsplit=2)
    (section,) = sections(tmp_path, "\n".join((declaration, *[""] * empty, rest)))
    assert (section.kind, section.first) == ("nvidia-smi -q -x", first)


def test_very_long_line_begins_no_dump(tmp_path: Path) -> None:
    title = "|  NVIDIA-SMI 570.158.01"
    for length, found in ((100_000, 2), (100_001, 1)):
        assert len(kinds(tmp_path, LOG + title.ljust(length) + "\n")) == found


@pytest.mark.parametrize("zeros", [90, 91])
def test_text_of_two_bytes_a_character_has_more_than_nine_zeros_in_ten(zeros: int) -> None:
    data = b"".join(b"a\0" if number < zeros else b"ab" for number in range(100))
    assert (decode(data) == data.decode("utf-16-le")) is (zeros > 90)


def test_comment_above_a_csv_table_does_not_belong_to_it(tmp_path: Path) -> None:
    (section,) = sections(tmp_path, "$ nvidia-smi --query-gpu=name --format=csv\n# a comment\nname\nTesla T4\n")
    assert section.lines == ("name", "Tesla T4")
