"""Machines with a driver that does not answer some or all calls."""

from dataclasses import replace

from helpers import nvml_library as nvml
from helpers.machines.description import Description
from helpers.machines.healthy import h100_nvswitch
from helpers.machines.peculiar import l4_two_one_x1


def driver_not_loaded() -> Description:
    """Eight H100, and a kernel without the nvidia module, for example after a kernel upgrade."""
    machine = h100_nvswitch()
    slots = tuple(replace(slot, driver=None) for slot in machine.tree.slots)
    tree = machine.tree.changed(slots=slots, driver=None, modules=(), daemons=())
    return Description(nvml=nvml.driver_not_loaded(), tree=tree)


def nouveau() -> Description:
    """The same with nouveau bound to the GPUs."""
    machine = driver_not_loaded()
    slots = tuple(replace(slot, driver="nouveau") for slot in machine.tree.slots)
    return Description(nvml=machine.nvml, tree=machine.tree.changed(slots=slots, modules=("nouveau",)))


def unsigned_module() -> Description:
    """The same, because Secure Boot refuses an unsigned module."""
    machine = driver_not_loaded()
    log = ("Loading of unsigned module is rejected",)
    return Description(nvml=machine.nvml, tree=machine.tree.changed(secure_boot=True, log=log))


def library_mismatch() -> Description:
    """Eight H100. The driver packages were upgraded, but the old kernel module is still loaded."""
    tree = h100_nvswitch().tree
    log = (
        "NVRM: API mismatch: the client has the version 570.172.08, but",
        "NVRM: this kernel module has the version 570.158.01.  Please",
    )
    return Description(nvml=nvml.library_mismatch(), tree=tree.changed(log=log))


def permission_denied() -> Description:
    """Two L4 with device nodes that this user cannot open."""
    tree = l4_two_one_x1().tree.changed(node_mode=0o000)
    return Description(nvml=nvml.permission_denied(), tree=tree)


def nothing_supported() -> Description:
    """Two L4 that return "not supported" for every call except the one for the handle."""
    machine = l4_two_one_x1()
    orders = machine.nvml.order("*", nvml.NOT_SUPPORTED).order("nvmlDeviceGetHandleByIndex_v2", 0)
    return Description(nvml=orders, tree=machine.tree)


def one_call_hangs() -> Description:
    """Two L4. Power queries of GPU 1 hang."""
    machine = l4_two_one_x1()
    return Description(
        nvml=machine.nvml.order("nvmlDeviceGetPowerUsage", nvml.HANG, gpu=1), tree=machine.tree, deadline_s=4.0
    )
