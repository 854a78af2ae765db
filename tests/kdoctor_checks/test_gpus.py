"""What the checks of GPUs share: which GPUs answer, which readings count, and commands for some of them."""

from typing import Any

from helpers.cases import cases
from helpers.facts import NOT_SUPPORTED, bus_id, gpu, gpus, lost_gpu, pci, pci_gpu
from kdoctor.facts import Gpu, PciDevices, Unavailable
from kdoctor.model import NotApplicable, Unjudged
from kdoctor_checks._gpus import (
    absent,
    lost,
    lost_addresses,
    only_lost,
    readings,
    reset,
    smi,
    too_new,
    unread,
    unsupported,
    virtual,
)

UNREAD = Unavailable(unavailable="not read")
HANGS = "no answer within 5 s"


@cases(
    ({}, None),
    ({"name": "GpuIsLost"}, "GpuIsLost"),
    ({"name": "NVML_ERROR_GPU_IS_LOST"}, "NVML_ERROR_GPU_IS_LOST"),
    ({"name": "GPU requires reset"}, "GPU requires reset"),
    ({"name": "Unknown Error"}, None),
    ({"performance_state": "Unknown Error"}, "Unknown Error"),
    ({"performance_state": "ERR!"}, "ERR!"),
    ({"handle": "Unknown Error"}, "Unknown Error"),
    ({"handle": HANGS}, None),
    ({"handle": "NVML_ERROR_NO_PERMISSION"}, None),
    ({"name": NOT_SUPPORTED}, None),
)
def test_lost_gpu_has_its_error(errors: dict[str, str], reason: str | None) -> None:
    assert lost(Gpu(index=0, errors=errors)) == reason


@cases(
    (1, (0, 1), {bus_id(1)}),  # GPU 0 is at the first address
    (2, (0, 1), set()),  # two GPUs, and one address that is left
    (2, (0, 1, 2), {bus_id(1), bus_id(2)}),
    (1, (0, 1, 2), set()),  # one of two addresses
)
def test_addresses_of_lost_gpus_are_those_that_are_left(
    lost_number: int, addresses: tuple[int, ...], expected: set[str]
) -> None:
    found = gpus(1 + lost_number, gpu(0), *(lost_gpu(index) for index in range(1, 1 + lost_number)))
    passed_through = pci_gpu(7, driver="vfio-pci")
    bus = PciDevices(devices=(*(pci_gpu(index) for index in addresses), passed_through))
    assert lost_addresses(found, bus) == expected
    assert lost_addresses(found, UNREAD) == set()


@cases(
    (gpus(1), UNREAD, None),
    (gpus(0, count=1), UNREAD, None),
    (gpus(0, count=0), UNREAD, "the driver lists no GPU"),
    (gpus(0, count=0), pci(1), "the driver lists no GPU"),
    (gpus(0, count=0), PciDevices(devices=()), "no NVIDIA GPU on the PCI bus and none listed by the driver"),
    (UNREAD, UNREAD, None),
    (UNREAD, pci(1), None),
    (UNREAD, PciDevices(devices=()), "no NVIDIA GPU on the PCI bus"),
)
def test_machine_without_gpus_is_not_applicable(found: Any, bus: Any, reason: str | None) -> None:
    outcome = absent(found, bus)
    assert (outcome.reason if outcome else None) == reason


@cases(
    (None, False, False), (NOT_SUPPORTED, True, False), ("Not Supported", True, False), ("N/A", True, False),
    ("not available", False, False), ("Function Not Found", False, True), ("Unknown Error", False, False),
    ("NVMLError_InvalidArgument", False, True),
)  # fmt: skip
def test_errors_of_missing_readings(error: str | None, *, lacks: bool, needs_driver: bool) -> None:
    assert (unsupported(error), too_new(error)) == (lacks, needs_driver)


def lacking(index: int, error: str | None, **changes: Any) -> Gpu:
    errors = {} if error is None else {"fan_speed_percent": error}
    return gpu(index, **{"fan_speed_percent": None, "errors": errors, **changes})


BOTH_KINDS = {"fan_speed_percent": NOT_SUPPORTED, "temperature_c": "Function Not Found"}


def outcome(*devices: Gpu, newer: bool = False) -> tuple[list[int], list[str]]:
    judged, others = readings(gpus(len(devices), *devices), "fan_speed_percent", newer=newer)
    return [item.index for item in judged], [
        item.reason for item in others if isinstance(item, NotApplicable | Unjudged)
    ]


def test_reading_that_no_gpu_of_the_model_supports_is_not_applicable() -> None:
    name = "NVIDIA H100 80GB HBM3"
    assert outcome(lacking(0, NOT_SUPPORTED), lacking(1, NOT_SUPPORTED)) == (
        [],
        [f"fan speed not reported here for {name}"],
    )
    assert outcome(lacking(0, NOT_SUPPORTED, name=None)) == ([], ["fan speed not reported here for this GPU"])
    judged, reasons = outcome(gpu(0, fan_speed_percent=30), lacking(1, NOT_SUPPORTED))
    assert (judged, len(reasons)) == ([0], 1)  # an equal GPU reports it, so that a value is missing
    assert outcome(gpu(0, fan_speed_percent=30), lacking(1, NOT_SUPPORTED, name="another")) == ([0], [])
    assert outcome(gpu(0, fan_speed_percent=30), lacking(1, NOT_SUPPORTED, mig_mode=True)) == ([0], [])
    assert outcome(lacking(0, NOT_SUPPORTED, mig_mode=True))[1] == ["fan speed not reported here while MIG is on"]


def test_gpu_with_one_unsupported_and_one_failed_reading_is_unknown() -> None:
    errors = {"fan_speed_percent": NOT_SUPPORTED, "temperature_c": "Unknown Error"}
    found = gpus(1, gpu(0, fan_speed_percent=None, temperature_c=None, errors=errors))
    judged, (item,) = readings(found, "fan_speed_percent", "temperature_c")
    assert (judged, type(item)) == ([], Unjudged)


def test_gpu_that_lacks_a_reading_does_not_excuse_one_that_failed() -> None:
    devices = (lacking(0, NOT_SUPPORTED, name="another"), lacking(1, "Unknown Error"))
    for order in (devices, devices[::-1]):
        judged, others = readings(gpus(2, *order), "fan_speed_percent")
        assert (judged, [type(item) for item in others]) == ([], [Unjudged])


def test_reading_of_newer_drivers_is_not_applicable_where_none_has_it() -> None:
    old = lacking(0, "Function Not Found")
    (reason,) = outcome(old, newer=True)[1]
    assert reason.endswith("is too old to report fan speed")
    assert outcome(old, lacking(1, NOT_SUPPORTED), newer=True)[1] == [
        f"{reason}; fan speed not reported here for NVIDIA H100 80GB HBM3"
    ]
    both = gpus(1, gpu(0, fan_speed_percent=None, temperature_c=None, errors=BOTH_KINDS))
    ((excuse,), found) = readings(both, "fan_speed_percent", "temperature_c", newer=True)[::-1]
    assert (type(excuse), found) == (NotApplicable, [])
    assert outcome(old) == ([], ["fan speed not read (the driver is too old: Function Not Found)"])
    assert outcome(old, gpu(1, fan_speed_percent=3), newer=True)[0] == [1]
    assert len(outcome(old, gpu(1, fan_speed_percent=3), newer=True)[1]) == 1
    assert outcome(lacking(0, "Unknown Error"), newer=True) == ([], ["fan speed not read (Unknown Error)"])


def test_only_outcomes_of_lost_gpus_are_ignored() -> None:
    _, gone = readings(gpus(2, gpu(0), lost_gpu(1)), "name")
    assert gone
    assert only_lost(gone)
    _, others = readings(gpus(1, lacking(0, None)), "fan_speed_percent")
    assert not only_lost([*gone, *others])
    assert only_lost([])
    assert not only_lost([NotApplicable(reason="no")])


def test_unread_fields_are_all_named() -> None:
    found = unread(gpu(0, name=None, temperature_c=None, errors={"name": "hung"}), "name", "temperature_c", "uuid")
    assert found is not None
    assert found.reason == "name not read (hung), temperature not read (no reason given)"
    assert found.explained_by == ()
    assert unread(gpu(0), "name") is None
    gone = unread(lost_gpu(1), "name")
    assert gone is not None
    assert (gone.reason, gone.explained_by) == ("name not read (GpuIsLost)", ("gpu.responding",))


def test_virtualization_is_named() -> None:
    assert virtual(gpus(2)) is None
    assert virtual(gpus(1, gpu(0, virtualization_mode=None))) is None
    modes = gpus(2, gpu(0, virtualization_mode="vgpu"), gpu(1, virtualization_mode="passthrough"))
    assert virtual(modes) == "passthrough, vgpu"


def test_commands_name_the_gpus_unless_all_are_meant() -> None:
    found = gpus(2)
    one, two = found.devices
    assert smi(one, "-q") == f"nvidia-smi -i {bus_id(0)} -q"
    assert smi([one, two], "-q") == f"nvidia-smi -i {bus_id(0)},{bus_id(1)} -q"
    assert smi([one, two], "-q", among=found) == "nvidia-smi -q"
    assert smi(one, "-q", among=found) == f"nvidia-smi -i {bus_id(0)} -q"
    assert smi(gpu(3, bus_id=None), "-q") == "nvidia-smi -i 3 -q"
    assert reset([one, gpu(3, bus_id=None)]).commands == (f"sudo nvidia-smi --gpu-reset -i {bus_id(0)},3",)
    assert not reset([one, gpu(3, bus_id=None, uuid=None, numbered=False)]).commands  # not one of two
