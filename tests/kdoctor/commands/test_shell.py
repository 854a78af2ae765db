import json
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.facts import environment
from helpers.rollbacks import shell
from kdoctor.commands.keras_json import put_settings, verify_settings
from kdoctor.commands.search_path import search_first, search_without
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.commands.system import manager_of, restore_library


@pytest.mark.parametrize("value", ["plain", "", "a b", "it's", '$(touch /x) `y` "z"', "line\nbreak"])
def test_shell_reads_back_the_value_of_a_variable(value: str) -> None:
    assert shell(f'{set_variable("X", value)}; printf %s "$X"').stdout == value
    assert shell(f"printf %s {quoted(value)}").stdout == value


def test_variable_without_a_value_is_unset() -> None:
    assert shell(f'export X=1; {set_variable("X", None)}; test -z "${{X+set}}"').returncode == 0


@pytest.mark.parametrize(("before", "after"), [("", "/a b"), ("/old", "/a b:/old")])
def test_folder_is_searched_first(before: str, after: str) -> None:
    command = f'export LD_LIBRARY_PATH={before}; {search_first(["/a b", "/a b"])}; printf %s "$LD_LIBRARY_PATH"'
    assert shell(command).stdout == after


def test_folder_is_removed_from_the_recorded_path() -> None:
    found = environment(LD_LIBRARY_PATH="/opt/old/:/keep:")
    assert search_without(["/opt/old"], found) == "export LD_LIBRARY_PATH=/keep"
    assert search_without(["/opt/old", "/keep"], found) == "unset LD_LIBRARY_PATH"


def test_keras_settings_are_added_to_a_new_file(tmp_path: Path) -> None:
    home = f"export KERAS_HOME={quoted(str(tmp_path / 'new'))}; "
    assert shell(home + verify_settings({"floatx": "float16"})).returncode == 1
    assert shell(home + put_settings({"floatx": "float16", "epsilon": "1e-5"})).returncode == 0
    assert json.loads((tmp_path / "new" / "keras.json").read_text()) == {"floatx": "float16", "epsilon": 1e-5}
    assert shell(home + verify_settings({"floatx": "float16"})).returncode == 0


@cases(("Ubuntu 24.04.2 LTS", "apt"), ("Rocky Linux 9.5 (Blue Onyx)", "dnf"), ("Arch Linux", None), (None, None))
def test_package_manager_of_a_distribution(release: str | None, manager: str | None) -> None:
    assert manager_of(release) == manager


def test_library_without_a_known_package_or_release_is_not_installed() -> None:
    assert restore_library("apt", "cufft", "11.4.1", None) is None
    assert restore_library("apt", "cufft", "eleven", "12.9.79") is None
    assert restore_library("apt", "unknown", "11.4.1", "12.9.79") is None
    assert restore_library("dnf", "nccl", "2.27.7", None) == (
        "sudo dnf install --allowerasing 'libnccl-2.27.7*'",
        "rpm -q libnccl | grep -F 2.27.7",
    )
