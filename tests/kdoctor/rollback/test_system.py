import pytest

from helpers.cases import cases
from helpers.facts import gpus, host, kernel, package, packages
from helpers.facts.libraries import libraries, library
from helpers.locks import lock
from helpers.rollbacks import planned, with_packages
from kdoctor.facts import FactGroup, Libraries
from kdoctor.rollback.render import as_text


@cases(
    (
        "Ubuntu 24.04.2 LTS",
        (
            (
                "printf '%s\\n' 'Package: *nvidia*' 'Pin: version 580.105.08*' 'Pin-Priority: 1001' "
                "| sudo tee /etc/apt/preferences.d/kdoctor-rollback"
            ),
            "sudo apt-get update",
            "sudo apt-get install --allow-downgrades nvidia-driver-580-open",
        ),
    ),
    (
        "Rocky Linux 9.5 (Blue Onyx)",
        ("sudo dnf install 'nvidia-driver*-580.105.08*' 'kmod-nvidia-open-dkms-580.105.08*'",),
    ),
)
def test_driver_needs_root_and_a_reboot_and_comes_last(os_release: str, commands: tuple[str, ...]) -> None:
    drifted = (gpus(driver_version="575.57.08"), kernel(version="575.57.08"), with_packages(package("keras", "3.6.0")))
    system = host(os_release=os_release)
    first, last = planned(*drifted, system, to=lock(system)).steps
    assert first.restores == ("packages.keras: 3.6.0 -> 3.15.1",)
    assert last.commands == (*commands, "sudo systemctl reboot")
    assert last.needs_root
    assert last.needs_reboot
    assert "driver.version: 575.57.08 -> 580.105.08" in last.restores
    assert "grep -F 580.105.08 /proc/driver/nvidia/version" in last.verify


def test_dnf_downgrades_a_newer_driver() -> None:
    system = host(os_release="Rocky Linux 9.5 (Blue Onyx)")
    (step,) = planned(gpus(driver_version="590.44.01"), kernel(version="590.44.01"), system, to=lock(system)).steps
    assert step.commands[0].startswith("sudo dnf downgrade 'nvidia-driver*-580.105.08*' ")


IMAGE = "registry.example/train:7"


@cases(
    ("docker", f"docker pull {IMAGE}"),
    ("podman", f"podman pull {IMAGE}"),
    ("kubernetes", f"kubectl set image '<kind>/<name>' '<container>'={IMAGE}"),
    ("apptainer", f"apptainer exec --nv {IMAGE} '<command>'"),
    ("container", f"docker pull {IMAGE}"),
)
def test_recorded_image_comes_first_and_is_started_elsewhere(engine: str, command: str) -> None:
    before = host(container=engine, image=IMAGE, image_from="KDOCTOR_IMAGE")
    now = host(container=engine, image="registry.example/train:8", image_from="KDOCTOR_IMAGE")
    plan = planned(now, with_packages(package("keras", "3.6.0")), to=lock(before))
    first, second = plan.steps
    assert first.commands == (command,)
    assert first.elsewhere
    assert second.restores == ("packages.keras: 3.6.0 -> 3.15.1",)
    assert plan.by_hand == ()
    assert f"({first.elsewhere})" in as_text(plan)


def test_image_is_restored_only_if_it_was_recorded() -> None:
    known, unknown = host(container="docker", image=IMAGE, image_from="KDOCTOR_IMAGE"), host(container="docker")
    assert planned(unknown, to=lock(known)).steps[0].restores == (f"host.image: nothing -> {IMAGE}",)
    assert planned(known, to=lock(unknown)).is_empty


def system_libraries(version: str | None) -> Libraries:
    """cuDNN of the system, found in the cache of the loader."""
    gone = {} if version else {"status": "missing", "path": None}
    values = {"package": None, "package_version": None, "path": "/usr/lib/x86_64-linux-gnu/libcudnn.so.9", **gone}
    return libraries(library("cudnn", version=version, found_by="ld.so.cache" if version else None, **values))


@pytest.mark.parametrize("now", ["9.1.0", None])
@cases(
    ("Ubuntu 24.04.2 LTS", "sudo apt-get install --allow-downgrades 'libcudnn9-cuda-12=9.24.0*'",
     "dpkg-query -W libcudnn9-cuda-12 | grep -F 9.24.0"),
    ("Rocky Linux 9.5 (Blue Onyx)", "sudo dnf install --allowerasing 'libcudnn9-cuda-12-9.24.0*'",
     "rpm -q libcudnn9-cuda-12 | grep -F 9.24.0"),
)  # fmt: skip
def test_libraries_of_the_system_are_restored_by_its_package_manager(
    now: str | None, os_release: str, command: str, verify: str
) -> None:
    system = host(os_release=os_release)
    (step,) = planned(system_libraries(now), system, to=lock(system_libraries("9.24.0"), system)).steps
    assert (step.commands, step.verify, step.needs_root) == ((command,), (verify,), True)


def test_libraries_of_wheels_are_restored_with_them_and_others_manually() -> None:
    wheels = libraries(library("cudnn", version="9.1.0", package_version="9.1.0.70"))
    both = lock(libraries(), packages(*packages().installed, package("nvidia-cudnn-cu12", "9.24.0.43")))
    now = packages(*packages().installed, package("nvidia-cudnn-cu12", "9.1.0.70"))
    together = planned(wheels, now, to=both)
    (step,) = together.steps
    assert together.by_hand == ()
    assert step.restores == ("packages.nvidia-cudnn-cu12: 9.1.0.70 -> 9.24.0.43",)
    alone = planned(wheels, to=lock(libraries()))
    assert alone.steps == ()
    assert "libraries.cudnn: 9.1.0 -> 9.24.0" in alone.by_hand[0]


def test_library_package_names_the_release_of_the_toolkit() -> None:
    system = host(os_release="Ubuntu 24.04.2 LTS")

    def of_system(version: str) -> Libraries:
        return libraries(library("cufft", version=version, package=None, path="/usr/local/cuda/lib64/libcufft.so.11"))

    (step,) = planned(of_system("11.2.0"), system, to=lock(of_system("11.4.1"), system)).steps
    assert step.commands == ("sudo apt-get install --allow-downgrades 'libcufft-12-9=11.4.1*'",)


@cases((host(container="docker"), "container"), (host(os_release="Arch Linux"), "install 580.105.08"))
def test_driver_that_cannot_be_restored_from_here_is_manual(system: FactGroup, decisive: str) -> None:
    drifted = (gpus(driver_version="575.57.08"), kernel(version="575.57.08"), system_libraries("9.1.0"))
    plan = planned(*drifted, system, to=lock(system, system_libraries("9.24.0")))
    assert plan.steps == ()
    assert any("NVIDIA driver" in text and decisive in text for text in plan.by_hand)
    assert any("libraries.cudnn: 9.1.0 -> 9.24.0" in text for text in plan.by_hand)


def test_hardware_and_kernel_are_not_restored_by_commands() -> None:
    plan = planned(gpus(7), host(kernel="6.14.0"))
    assert plan.steps == ()
    assert sum("gpus.compute-capability.9.0: 7 -> 8" in text for text in plan.by_hand) == 1
    assert sum("host.kernel: 6.14.0 -> 6.8" in text for text in plan.by_hand) == 1
    assert not plan.is_empty


def test_each_library_is_judged_for_itself() -> None:
    """cuda belongs to the driver and cublas to a wheel that did not drift; cudnn is of the system."""
    system = host(os_release="Ubuntu 24.04.2 LTS")

    def of_both(cuda: str, cublas: str, cudnn: str) -> Libraries:
        values = {"package": None, "path": "/usr/lib/x86_64-linux-gnu/libcudnn.so.9", "found_by": "ld.so.cache"}
        return libraries(
            library("cuda", version=cuda), library("cublas", version=cublas), library("cudnn", version=cudnn, **values)
        )

    plan = planned(of_both("1", "12.1.0", "9.1.0"), system, to=lock(of_both("2", "12.9.1", "9.24.0"), system))
    assert [step.restores for step in plan.steps] == [("libraries.cudnn: 9.1.0 -> 9.24.0",)]
    (text,) = plan.by_hand
    assert "libraries.cublas: 12.1.0 -> 12.9.1" in text


def test_library_with_an_odd_name_is_restored_manually() -> None:
    before = lock()
    odd = before.model_copy(update={"facts": {**before.facts, "libraries": {"a(b": "1"}}})
    assert "libraries.a(b: nothing -> 1" in planned(libraries(), to=odd).by_hand[0]


@cases(
    ("apptainer", 'test "${APPTAINER_CONTAINER##*/}" = train:7'), ("docker", f'test "${{KDOCTOR_IMAGE-}}" = {IMAGE}')
)
def test_image_is_verified_by_what_its_engine_sets(engine: str, verify: str) -> None:
    before, now = (host(container=engine, image=name, image_from="KDOCTOR_IMAGE") for name in (IMAGE, "x:8"))
    assert planned(now, to=lock(before)).steps[0].verify == (verify,)


def test_driver_is_restored_by_the_version_of_its_module_if_nvml_was_not_read() -> None:
    system, drifted = (
        host(os_release="Ubuntu 24.04.2 LTS"),
        (gpus(driver_version="575.57.08"), kernel(version="575.57.08")),
    )
    (step,) = planned(*drifted, system, to=lock(system, gpus(driver_version=None))).steps
    assert "grep -F 580.105.08 /proc/driver/nvidia/version" in step.verify


def test_driver_without_a_recorded_version_is_restored_manually() -> None:
    system = host(os_release="Ubuntu 24.04.2 LTS")
    before = lock(system, gpus(driver_version=None), kernel(loaded=False, version=None))
    plan = planned(system, to=before)
    assert plan.steps == ()
    assert any("no version" in text for text in plan.by_hand)
