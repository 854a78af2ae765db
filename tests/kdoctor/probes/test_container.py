from pathlib import Path

from helpers.cases import cases
from helpers.machine import context, write
from kdoctor.facts import Host
from kdoctor.probes.container import container, container_image
from kdoctor.probes.host import collect

ROOT_MOUNT = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
OVERLAY_MOUNT = "1021 970 0:120 / / rw,relatime master:290 - overlay overlay rw,lowerdir=/var/lib\n"


@cases(
    ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ({".dockerenv": ""}, {}, "docker"),
    ({".dockerenv": "", ".singularity.d__Singularity": "bootstrap: docker\n"}, {}, "apptainer"),
    ({"run__.containerenv": ""}, {}, "podman"),
    ({"run__systemd__container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
    ({}, {"container": "lxc"}, "lxc"),
    ({"proc__1__cgroup": "0::/kubepods.slice/kubepods-pod1.slice\n"}, {}, "kubernetes"),
    ({"proc__1__cgroup": "12:memory:/docker/0123abc\n"}, {}, "docker"),
    ({"proc__1__cgroup": "0::/\n", "proc__self__mountinfo": OVERLAY_MOUNT}, {}, "container"),
    ({"proc__1__cgroup": "0::/init.scope\n", "proc__self__mountinfo": ROOT_MOUNT}, {}, "none"),
    ({"proc__1__cgroup": "0::/init.scope\n"}, {}, None),
    ({}, {}, None),
)
def test_container_engine_is_detected(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], engine: str | None
) -> None:
    write(tmp_path, **files)
    assert container(tmp_path, environ) == engine


PODMAN = (
    'engine="podman-4.9.3"\nname="job"\nid="0123"\nimage="registry.example/team/train:7"\nimageid="89ab"\nrootless=1\n'
)


@cases(
    ({}, {}, None, None),
    ({".dockerenv": ""}, {}, None, None),
    ({"run__.containerenv": ""}, {}, None, None),
    ({"run__.containerenv": PODMAN}, {}, "registry.example/team/train:7", "/run/.containerenv"),
    ({}, {"APPTAINER_CONTAINER": "/data/train-7.sif"}, "/data/train-7.sif", "APPTAINER_CONTAINER"),
    ({}, {"SINGULARITY_CONTAINER": "/data/train-7.sif"}, "/data/train-7.sif", "SINGULARITY_CONTAINER"),
    ({"run__.containerenv": PODMAN}, {"KDOCTOR_IMAGE": "train:8"}, "train:8", "KDOCTOR_IMAGE"),
    ({}, {"KDOCTOR_IMAGE": " "}, None, None),
    ({}, {"KDOCTOR_IMAGE": "https://ada:secret@registry.example/train"}, "https://***@registry.example/train",
     "KDOCTOR_IMAGE"),
)  # fmt: skip
def test_image_is_unknown_without_a_source(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], image: str | None, said_by: str | None
) -> None:
    write(tmp_path, **files)
    assert container_image(tmp_path, environ) == (image, said_by)


def test_image_is_a_fact(tmp_path: Path) -> None:
    facts = collect(context(tmp_path, {"KDOCTOR_IMAGE": "train:8"}))[Host]
    assert isinstance(facts, Host)
    assert (facts.image, facts.image_from) == ("train:8", "KDOCTOR_IMAGE")
