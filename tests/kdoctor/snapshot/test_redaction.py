import pytest

from helpers.cases import cases
from kdoctor.snapshot.redaction import Redaction

ALICE = Redaction(home="/home/alice", user="alice")


@cases(
    ("/home/alice", "~"),
    ("/home/alice/venv/bin/python", "~/venv/bin/python"),
    ("/opt/lib:/home/alice/lib:/home/bob/lib", "/opt/lib:~/lib:/home/<user>/lib"),
    ("--flag=/home/alice/x", "--flag=~/x"),
    ("/home/alicelike/x", "/home/<user>/x"),
    ("/Users/bob/x", "/Users/<user>/x"),
    ("C:\\Users\\bob\\x", "C:\\Users\\<user>\\x"),
    ("/data/alice/run", "/data/<user>/run"),
    ("/data/alice", "/data/<user>"),
    ("/data/malice/run", "/data/malice/run"),
    ("alice", "alice"),
    ("/srv/site-packages/alice/x.py", "/srv/site-packages/alice/x.py"),
    ("https://alice:secret@host/x", "https://***@host/x"),
    ('File "/home/alice/train.py", line 3', 'File "~/train.py", line 3'),
)
def test_user_is_redacted_in_text(text: str, redacted: str) -> None:
    assert ALICE.text(text) == redacted
    assert ALICE.text(redacted) == redacted


@pytest.mark.parametrize("name", ["root", "Admin"])
def test_common_name_is_not_redacted(name: str) -> None:
    common = Redaction(home="/root", user=name)
    assert common.text(f"/root/.venv/bin:/data/{name}/x:/opt/{name}") == f"~/.venv/bin:/data/{name}/x:/opt/{name}"


@pytest.mark.parametrize("home", ["/", ""])
def test_user_without_home_or_name(home: str) -> None:
    assert Redaction(home=home, user="").text("/usr/lib//x") == "/usr/lib//x"


def test_nested_values_are_redacted_but_not_keys() -> None:
    value = {"/home/alice": ["/home/alice/a", 1, None, True, {"x": "/home/alice/b"}]}
    assert ALICE.apply(value) == {"/home/alice": ["~/a", 1, None, True, {"x": "~/b"}]}


def test_values_of_variables_are_redacted() -> None:
    variables = {"SLURM_JOB_USER": "alice", "SLURM_JWT": "abc", "CUDA_VISIBLE_DEVICES": "0,1", "TF_X": "alice"}
    assert ALICE.apply({"variables": variables}) == {
        "variables": {"SLURM_JOB_USER": "<user>", "SLURM_JWT": "***", "CUDA_VISIBLE_DEVICES": "0,1", "TF_X": "alice"}
    }
