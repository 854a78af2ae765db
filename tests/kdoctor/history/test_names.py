"""Short names of the environments of several runs."""

from hypothesis import given
from hypothesis import strategies as st

from helpers.cases import cases
from kdoctor.history.names import series_names, short_paths


@cases(
    (["/opt/a/bin/python", "/opt/b/bin/python"], ["a", "b"]),
    (["/home/u/a/.venv/bin/python", "/home/u/b/.venv/bin/python"], ["a/.venv", "b/.venv"]),
    (["/home/u/a/.venv/bin/python", "/opt/k36/bin/python"], ["a/.venv", "k36"]),
    (["/usr/bin/python3.10", "/usr/bin/python3.11"], ["python3.10", "python3.11"]),
    (["/x/job/bin/python", "/y/job/bin/python"], ["x/job", "y/job"]),
    (["/job/bin/python", "/y/job/bin/python"], ["/job", "y/job"]),
    (["/bin/a", "/bin/b", "/bin/a/bin/a"], ["/bin/a", "b", "a/bin/a"]),
    (["recorded in /tmp/a.json", "/opt/b/bin/python"], ["a.json", "b"]),
)
def test_shortest_ending_tells_apart(paths: list[str], names: list[str]) -> None:
    assert [short_paths(paths)[path] for path in paths] == names


@given(
    st.sets(
        st.lists(st.sampled_from(["a", "b", "bin", "python", ".venv"]), min_size=1, max_size=6).map(
            lambda parts: "/" + "/".join(parts)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_names_are_unique_endings(paths: set[str]) -> None:
    names = short_paths(paths)
    assert set(names) == paths
    assert len(set(names.values())) == len(paths)


def test_only_what_differs_is_named() -> None:
    one, other = ("node1", "/opt/a/bin/python"), ("node2", "/opt/a/bin/python")
    assert series_names([one, one]) == {one: ""}
    assert series_names([one, other]) == {one: "node1", other: "node2"}
    third = ("node1", "/opt/b/bin/python")
    assert series_names([one, other, third])[third] == "node1:b"
