from __future__ import annotations

import pytest

from kdoctor.text.secrets import is_secret_name, mask, mask_variable


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://user:pw@host/x", "https://***@host/x"),
        ("git+https://tok@host/r.git@v1", "git+https://***@host/r.git@v1"),
        ("ghp_" + "a" * 36, "***"),
        ("key AKIA" + "A1B2C3D4E5F6G7H8 end", "key *** end"),
        ("hf_" + "a" * 34, "***"),
        ("password=hunter2 user=x", "password=*** user=x"),
        ("https://host/?a=1&token=abc&b=2", "https://host/?a=1&token=***&b=2"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
    ],
)
def test_secret_is_masked_once(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "tokenizers>=0.13",
        "google-auth-token==1.0",
        "api-token~=2.0",
        "https://host/path@v1",
        "git+https://github.com/a/b@main",
        "user@host",
        "GPU-3f2d0c1e-1111-2222-3333-444455556666",
        "NVRM: API mismatch: the client has the version 580.173.02",
        "/usr/local/cuda/lib64:/opt/lib",
    ],
)
def test_harmless_text_is_kept(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("name", ["HF_TOKEN", "SLURM_JWT", "API_KEY", "DB_PASSWORD", "X_AUTH", "apiKey", "SECRET"])
def test_name_suggests_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["NCCL_IB_PKEY", "KERAS_BACKEND", "TF_CONFIG", "OMPI_AUTHOR", "SLURM_JOB_ID", "keys"])
def test_name_suggests_no_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_broken_json_is_searched_as_text() -> None:
    assert mask_variable("TF_CONFIG", '{"password": "hunter2"') == '{"password": "***"'
    assert mask_variable("TF_CONFIG", "[" * 100_000) == "[" * 100_000
    assert mask_variable("X_TOKEN", "") == ""
