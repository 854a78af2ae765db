import pytest

from helpers.cases import cases
from kdoctor.matrix.load import shipped_matrix
from kdoctor.matrix.values import parse_requirement
from kdoctor_checks._cuda_components import cuda_release


@pytest.mark.parametrize("release", ["2.15.1", "2.16.2", "2.17.1", "2.18.1", "2.19.1"])
def test_pins_of_each_release_belong_to_the_cuda_of_its_build(release: str) -> None:
    found = shipped_matrix().release(release)
    assert found
    assert found.and_cuda
    cuda = ".".join(found.cuda.split(".")[:2])
    releases = {}
    for line in found.and_cuda:
        requirement = parse_requirement(line)
        component = requirement.name.removeprefix("nvidia-").removesuffix("-cu12")
        (pin,) = requirement.specifier
        if component in {"cublas", "cufft", "cusolver", "cusparse"}:
            releases[component] = cuda_release(component, ".".join(pin.version.split(".")[:3]))
    assert releases == dict.fromkeys(("cublas", "cufft", "cusolver", "cusparse"), cuda)


@cases(("cufft", "11.4.1"), ("cusolver", "11.7.5"), ("cusparse", "12.5.10"), ("cudart", "12.9"))
def test_components_of_cuda_12_9_are_recognized(component: str, version: str) -> None:
    assert cuda_release(component, version) == "12.9"  # the wheels that `make test-wheels` installs


@cases(("cufft", "10.9.0"), ("cufft", None), ("cufft", "eleven"), ("cufft", "11"), ("nccl", "2.27.7"))
def test_version_outside_the_table_is_unknown(component: str, version: str | None) -> None:
    assert cuda_release(component, version) is None
