import time

import pytest

from helpers.cases import cases
from kdoctor.snapshot.redaction import Redaction
from kdoctor.text.sanitize import clean
from kdoctor.text.secrets import is_identifying, is_secret_name, mask, mask_variable


@cases(
    ("https://user:pw@host/x", "https://***@host/x"),
    ("git+https://tok@host/r.git@v1", "git+https://***@host/r.git@v1"),
    ("ghp_" + "a" * 36, "***"),
    ("key AKIA" + "A1B2C3D4E5F6G7H8 end", "key *** end"),
    ("hf_" + "a" * 34, "***"),
    ("password=hunter2 user=x", "password=*** user=x"),
    ("https://host/?a=1&token=abc&b=2", "https://host/?a=1&token=***&b=2"),
    ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
    ("python train.py --password hunter2 --epochs 3", "python train.py --password *** --epochs 3"),
    ("job --api-key 'a b' -v", "job --api-key *** -v"),
    ("job --key=-abc", "job --key=***"),
    ("job --wandb.api_key abc", "job --wandb.api_key ***"),
    ("job --hf-token\tabc", "job --hf-token\t***"),
    ("user=x;pw=abc", "user=x;pw=***"),
    ("S3_KEY=abc region=x", "S3_KEY=*** region=x"),
    ("MASTER_ADDR=ada:hunter2@node1:29500", "MASTER_ADDR=***@node1:29500"),
    ("redis ada:hunter2@[fe80::1]:6379", "redis ***@[fe80::1]:6379"),
    ("DB_PASS=hunter2 job", "DB_PASS=*** job"),
    ("docker login -u ada -p hunter2 host", "docker login -u ada -p *** host"),
    ("mysql -u root -phunter2 db", "mysql -u root -p*** db"),
    ("redis-cli -h node1 -a hunter2 ping", "redis-cli -h node1 -a *** ping"),
    (f"wandb login {'0a1b' * 10}", "wandb login ***"),
    ("Cookie: session=hunter2; a=b", "Cookie: session=***; a=b"),
    (f"npm_{'a1B2' * 9}", "***"),
    (f"dop_v1_{'0a1b' * 16}", "***"),
    ('api_key="two words" job', 'api_key="***" job'),
    ("password: 'two words', user: x", "password: '***', user: x"),
    (r'password="a\"b c" job', 'password="***" job'),
    ('password="cut off', 'password="*** off'),
    (r"{\"password\": \"abc\"}", r'{\"password\": \"***"}'),
)
def test_secret_is_masked_once(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@cases(
    "tokenizers>=0.13",
    "google-auth-token==1.0",
    "api-token~=2.0",
    "https://host/path@v1",
    "git+https://github.com/a/b@main",
    "user@host",
    "git@github.com:a/b.git",
    "job:1.2@sha256:0a1b2c",
    "ghcr.io/org/job:1.2@sha256:0a1b2c",
    "--tokenizer bert --max-tokens 100 --key-size 2 --use-token --epochs 3",
    "--monkey 3 -p 22 --pass-through x",
    "primary key = id",
    "0000:01:00.0",
    "GPU-3f2d0c1e-1111-2222-3333-444455556666",
    "NVRM: API mismatch: the client has the version 580.173.02",
    "/usr/local/cuda/lib64:/opt/lib",
    "python login.py -p 8080",
    "mysql -h node1 -P 3306",
    "srun -p gpu python train.py --pass-through",
    "wandb login --relogin",
)
def test_harmless_text_is_kept(text: str) -> None:
    assert mask(text) == text


@cases("HF_TOKEN", "SLURM_JWT", "API_KEY", "DB_PASSWORD", "X_AUTH", "DB_PASS", "apiKey", "SECRET")
def test_name_suggests_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["NCCL_IB_PKEY", "KERAS_BACKEND", "TF_CONFIG", "OMPI_AUTHOR", "SLURM_JOB_ID", "keys"])
def test_name_suggests_no_secret(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "part",
    [
        *("a", "a.", "a-", "_", "1.", "a://", "token", "token=", "key ", "--a ", "--a-", "eyJ-", "eyJ", "a:b", "a:"),
        *(
            "sk-",
            "login ",
            "mysql ",
            "mysql -",
            "cookie:",
            "wandb login ",
            "bearer ",
            "-----BEGIN ",
            "authorization: ",
            "/home/",
            "\x1b[",
            "::",
            " ",
            '"',
            "--password ",
        ),
    ],
)
def test_time_grows_with_the_text_and_not_faster(part: str) -> None:
    text = part * (2**16 // len(part))
    start = time.process_time()
    mask(text)
    mask_variable("NAME", text)
    is_identifying(text)
    Redaction(home="/home/ada", user="ada").text(text)
    clean(text)
    assert time.process_time() - start < 3  # a quadratic pattern takes minutes; 0.1 s is usual


def test_broken_json_is_searched_as_text() -> None:
    assert mask_variable("TF_CONFIG", '{"password": "hunter2"') == '{"password": "***"'
    assert mask_variable("TF_CONFIG", "[" * 100_000) == "[" * 100_000
    assert mask_variable("X_TOKEN", "") == ""
