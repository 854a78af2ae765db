"""Machines whose driver does not answer, or not to everything."""

from __future__ import annotations

from dataclasses import replace

from helpers import nvml_library as nvml
from helpers.machines.description import Description
from helpers.machines.healthy import h100_nvswitch
from helpers.machines.peculiar import l4_two_one_x1


def driver_not_loaded() -> Description:
    """Eight H100, and a kernel without the nvidia module (after a kernel upgrade, say)."""
    machine = h100_nvswitch()
    slots = tuple(replace(slot, driver=None) for slot in machine.tree.slots)
    tree = machine.tree.changed(slots=slots, driver=None, modules=(), daemons=())
    return Description(nvml=nvml.driver_not_loaded(), tree=tree)


def nouveau() -> Description:
    """The same with the free driver bound to the GPUs."""
    machine = driver_not_loaded()
    slots = tuple(replace(slot, driver="nouveau") for slot in machine.tree.slots)
    return Description(nvml=machine.nvml, tree=machine.tree.changed(slots=slots, modules=("nouveau",)))


def unsigned_module() -> Description:
    """The same, because Secure Boot refuses a module that nobody signed."""
    machine = driver_not_loaded()
    log = ("Loading of unsigned module is rejected",)
    return Description(nvml=machine.nvml, tree=machine.tree.changed(secure_boot=True, log=log))


def library_mismatch() -> Description:
    """Eight H100: the driver's packages were upgraded, and the old kernel module still runs."""
    tree = h100_nvswitch().tree
    log = (
        "NVRM: API mismatch: the client has the version 570.172.08, but",
        "NVRM: this kernel module has the version 570.158.01.  Please",
    )
    return Description(nvml=nvml.library_mismatch(), tree=tree.changed(log=log))


def permission_denied() -> Description:
    """Two L4 whose device nodes this user may not open."""
    tree = l4_two_one_x1().tree.changed(node_mode=0o000)
    return Description(nvml=nvml.permission_denied(), tree=tree)


def nothing_supported() -> Description:
    """Two L4 that can be opened and then answer every call with "not supported"."""
    machine = l4_two_one_x1()
    orders = machine.nvml.order("*", nvml.NOT_SUPPORTED).order("nvmlDeviceGetHandleByIndex_v2", 0)
    return Description(nvml=orders, tree=machine.tree)


def one_call_hangs() -> Description:
    """Two L4, of which number 1 never says what it draws."""
    machine = l4_two_one_x1()
    return Description(
        nvml=machine.nvml.order("nvmlDeviceGetPowerUsage", nvml.HANG, gpu=1), tree=machine.tree, deadline_s=2.0
    )
