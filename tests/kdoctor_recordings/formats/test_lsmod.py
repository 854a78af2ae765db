from pathlib import Path

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import imported
from kdoctor.facts import Kernel, KernelDriver

HEAD = "Module                  Size  Used by\n"
OURS = "nvidia_uvm           1540096  0\nnvidia              56827904  1 nvidia_uvm\n"
NOUVEAU = "nouveau              2306048  4\nvideo                  49152  1 nouveau\n"


@cases(
    (OURS, ("nvidia", "nvidia_uvm"), True),
    (f"{HEAD}{OURS}{NOUVEAU}", ("nouveau", "nvidia", "nvidia_uvm"), True),
    (NOUVEAU, ("nouveau",), None),  # a search for one name shows nothing about others
    (f"{HEAD}video                  49152  0\n", (), False),
    ("nouveau 2306048 4 - Live 0x0000000000000000\n", ("nouveau",), None),
    ids=("searched", "whole", "one name", "none", "/proc/modules"),
)
def test_loaded_modules(tmp_path: Path, text: str, modules: tuple[str, ...], loaded: object) -> None:
    facts = imported(tmp_path, f"$ lsmod\n{text}").facts
    kernel, driver = facts[Kernel], facts.get(KernelDriver)
    assert isinstance(kernel, Kernel)
    assert kernel.modules == modules
    assert (driver.loaded if isinstance(driver, KernelDriver) else None) is loaded
