from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import NVLINK, UUID, group, imported, imported_gpus
from kdoctor.facts import Gpus, NvLink
from kdoctor_recordings.facts import Diagnostics
from kdoctor_recordings.formats.part import CUT


def test_links(tmp_path: Path) -> None:
    first, second = imported_gpus(tmp_path, NVLINK).devices
    assert first.nvlinks == (
        NvLink(index=0, active=True, speed_gbs=25.0),
        NvLink(index=1, active=False),
        NvLink(index=2, active=True, speed_gbs=26.562),
    )
    assert (second.index, second.uuid) == (1, UUID.format(1))


def test_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    assert imported_gpus(tmp_path, NVLINK.rstrip("\n")) == imported_gpus(tmp_path, NVLINK)


def test_list_of_gpus(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, "".join(f"GPU {n}: NVIDIA Test (UUID: {UUID.format(n)})\n" for n in range(3)))
    assert [gpu.uuid for gpu in gpus.devices] == [UUID.format(n) for n in range(3)]
    assert gpus.devices[0].errors["nvlinks"] == "not in nvidia-smi -L"


@cases(
    ("", 0, None), ("\n", 0, 3), ("$ date\n", 0, 3), ("\n", 1, None), ("...\n\n", 0, None), ("cuDNN version: 9\n", 0, 3)
)
def test_gpus_are_counted_where_the_list_has_them_all(
    tmp_path: Path, after: str, first: int, count: int | None
) -> None:
    listed = "".join(f"GPU {n}: NVIDIA Test (UUID: {UUID.format(n)})\n" for n in range(first, first + 3))
    assert imported_gpus(tmp_path, f"{listed}{after}").count == count


def counters(*lines: str) -> str:
    """``nvidia-smi nvlink -e`` of two GPUs, the second one with these lines."""
    zero = ("Link 0: Replay Errors: 0", "Link 0: Recovery Errors: 0", "Link 0: CRC Errors: 12")
    blocks = (zero, (*zero[:1], *lines))
    heads = (f"GPU {index}: NVIDIA Test (UUID: {UUID.format(index)})" for index in range(2))
    return "".join(
        f"{head}\n" + "".join(f"\t {line}\n" for line in block) for head, block in zip(heads, blocks, strict=True)
    )


@cases(
    ("Link 0: Recovery Errors: 0", "pass"),
    ("Link 0: Symbol BER: 15e-255", "pass"),
    ("Link 0: FEC Errors - 1: 7", "pass"),
    ("Link 7: Recovery Errors: 5", "warn"),
    ("Link 7: Link recovery successful events: 505", "warn"),
    ("Link 7: Link recovery failed events: 1", "fail"),
)
def test_counters_of_links_are_not_their_state(tmp_path: Path, line: str, status: str) -> None:
    facts = imported(tmp_path, counters(line)).facts
    gpus, found = group(facts, Gpus), group(facts, Diagnostics)
    assert [gpu.nvlinks for gpu in gpus.devices] == [None, None]
    assert [(item.subject, item.status) for item in found.results] == [("GPU 0", "pass"), ("GPU 1", status)]
    assert ("link 7" in found.results[1].message) == (status != "pass")


@cases("\t Link 0, P2P is supported: true\n", "\t Link 0: Remote Device 00000008:00:00.0: Link 3\n")
def test_other_properties_of_links_are_not_their_state(tmp_path: Path, line: str) -> None:
    gpu = imported_gpus(tmp_path, f"GPU 0: NVIDIA Test (UUID: {UUID.format(0)})\n{line}").devices[0]
    assert gpu.nvlinks is None


@pytest.mark.parametrize("before", ["", "GPU models and configuration: ", "GPU models and configuration: \n"])
def test_gpus_without_their_uuids(tmp_path: Path, before: str) -> None:
    gpus = imported_gpus(tmp_path, f"{before}GPU 0: TITAN RTX\nGPU 1: TITAN RTX\n\nNvidia driver version: 460.91.03\n")
    assert [(gpu.index, gpu.name, gpu.uuid) for gpu in gpus.devices] == [(0, "TITAN RTX", None), (1, "TITAN RTX", None)]
    assert gpus.driver_version == "460.91.03"


def test_listed_mig_devices_show_that_mig_is_on(tmp_path: Path) -> None:
    device = "  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n"
    text = f"GPU 0: NVIDIA Test (UUID: {UUID.format(0)})\n{device}GPU 1: NVIDIA Test (UUID: {UUID.format(1)})\n"
    gpus = imported_gpus(tmp_path, text)
    assert [gpu.mig_mode for gpu in gpus.devices] == [True, None]
    assert gpus.devices[0].errors["nvlinks"] == "not in nvidia-smi -L"


HEAD = f"GPU 0: NVIDIA Test (UUID: {UUID.format(0)})\n"
SECOND = f"GPU 1: NVIDIA Test (UUID: {UUID.format(1)})\n"


@cases(
    ("\t Link 0: 25 GB/s", True),
    ("\t Link 0: 26.562 GB/s", True),
    ("\t Link 0: <inactive>", True),
    ("\t Link 0: inactive", True),
    ("\t Link 0: 25 GB", False),
    ("\t Link 0: 2", False),
    ("\t Link 0: <inact", False),
)
def test_last_line_without_line_end_counts_if_it_is_complete(tmp_path: Path, last: str, *, is_read: bool) -> None:
    first = imported_gpus(tmp_path, f"{HEAD}\t Link 1: 25 GB/s\n{last}").devices[0]
    assert [link.index for link in first.nvlinks or ()] == ([1, 0] if is_read else [1])


@cases(("\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n", 2), ("\t Link 0: 25 GB/s\n", None), ("", None))
def test_last_gpu_of_a_file_has_as_many_links_as_the_others(tmp_path: Path, links: str, index: int | None) -> None:
    first = f"{HEAD}\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n"
    second = imported_gpus(tmp_path, f"{first}{SECOND}{links}").devices[1]
    assert (second.nvlinks is None) is (index is None)
    assert second.errors.get("nvlinks") == (CUT if index is None else None)
    # An empty line shows that the output is complete.
    second = imported_gpus(tmp_path, f"{first}{SECOND}{links}\n").devices[1]
    assert len(second.nvlinks or ()) == links.count("Link")


def test_last_gpu_may_have_no_links_for_another_reason(tmp_path: Path) -> None:
    text = f"{HEAD}\t Link 0: 25 GB/s\n{SECOND}Device does not have or support Nvlink\n"
    assert imported_gpus(tmp_path, text).devices[1].errors["nvlinks"] == "NVML_ERROR_NOT_SUPPORTED"
    inactive = "NVML: Unable to retrieve NVLink information as all links are inactive"
    two = imported_gpus(tmp_path, f"{HEAD}\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n{SECOND}{inactive}\n").devices[1]
    assert (two.nvlinks, two.errors["nvlinks"]) == ((NvLink(index=0, active=False),), inactive)
    strange = imported_gpus(tmp_path, f"{HEAD}\t Link 0: 25 GB/s\n{SECOND}Something else\n").devices[1]
    assert (strange.nvlinks, strange.errors["nvlinks"]) == (None, "Something else")


@cases(
    ("25 GB/s", NvLink(index=3, active=True, speed_gbs=25.0)),
    ("0 GB/s", NvLink(index=3, active=True, speed_gbs=0.0)),
    ("53.125 GB/s", NvLink(index=3, active=True, speed_gbs=53.125)),
    ("inactive", NvLink(index=3, active=False)),
    ("<Inactive>", NvLink(index=3, active=False)),
    ("", NvLink(index=3, errors={"active": "empty"})),
    ("25 MB/s", NvLink(index=3, errors={"active": "25 MB/s"})),
)
def test_state_of_a_link(tmp_path: Path, state: str, link: NvLink) -> None:
    assert imported_gpus(tmp_path, f"{HEAD}\t Link 3: {state}\n\n").devices[0].nvlinks == (link,)


def test_counters_of_several_links_are_counted(tmp_path: Path) -> None:
    lines = [f"Link {number}: Replay Errors: {number}" for number in range(1, 6)]
    found = group(imported(tmp_path, counters(*lines)).facts, Diagnostics)
    first, second = found.results
    assert (first.message, second.status) == ("", "warn")
    assert [f"link {number}: {number} Replay Errors" in second.message for number in range(1, 6)] == [True] * 3 + [
        False
    ] * 2
    assert "2 more" in second.message


def test_gpus_without_counters_have_no_result(tmp_path: Path) -> None:
    facts = imported(tmp_path, f"{HEAD}\t Link 0: 25 GB/s\n{SECOND}\t Link 0: Replay Errors: 1\n").facts
    found = group(facts, Diagnostics)
    assert [(item.subject, item.status) for item in found.results] == [("GPU 1", "warn")]
    assert Diagnostics not in imported(tmp_path, NVLINK).facts


def test_last_gpu_is_compared_with_the_one_with_the_most_links(tmp_path: Path) -> None:
    none = f"{HEAD}Device does not have or support Nvlink\n"
    text = f"{none}{SECOND}\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n"
    third = SECOND.replace("GPU 1:", "GPU 2:").replace(UUID.format(1), UUID.format(2))
    assert imported_gpus(tmp_path, f"{text}{third}\t Link 0: 25 GB/s\n").devices[2].errors["nvlinks"] == CUT
    assert len(imported_gpus(tmp_path, f"{text}{third}\t Link 0: 25 GB/s\n\n").devices[2].nvlinks or ()) == 1


LINKS = """\
+----------------------+
|  NvLink Link Status  |
+----------------------+
GPUs:
    gpuId 0:
        U D _ X
    gpuId 1:
        _ _ _ _
"""


def test_states_of_links_are_read(tmp_path: Path) -> None:
    first, second = imported_gpus(tmp_path, LINKS).devices
    assert [(link.index, link.active) for link in first.nvlinks or ()] == [(0, True), (1, False)]
    assert (second.nvlinks, second.errors["nvlinks"]) == (None, "NVML_ERROR_NOT_SUPPORTED")


@cases("...", "[...]", "\u2026")
def test_links_that_were_left_out_are_not_known(tmp_path: Path, left_out: str) -> None:
    text = f"{HEAD}\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n{SECOND}\t Link 0: 25 GB/s\n{left_out}\n\n"
    first, second = imported_gpus(tmp_path, text).devices
    assert (len(first.nvlinks or ()), second.nvlinks, second.errors["nvlinks"]) == (2, None, CUT)
