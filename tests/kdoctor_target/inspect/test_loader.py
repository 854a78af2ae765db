"""kdoctor's search compared with the real loader, on libraries that the tests build."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.shared_libraries import Answers, ask_both, build, build_opener
from kdoctor_target.inspect import loader

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="the loader of Linux")]

SONAME = "libmarker.so.1"
EI_CLASS, E_MACHINE, AARCH64, X86_64 = 4, 18, 183, 62


@pytest.fixture(scope="session")
def marker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("marker") / SONAME)


def place(marker: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(marker, folder / SONAME))


def patch(path: Path, offset: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] = value
    path.write_bytes(data)


def agree(answers: Answers, path: Path, found_by: str) -> None:
    """Assert that kdoctor and the loader chose this file."""
    assert answers.error == ""
    assert answers.loaded == [str(path.resolve())]
    assert (answers.said, answers.found_by, answers.trouble) == (str(path.resolve()), found_by, None)


def test_runpath_is_searched(marker: Path, tmp_path: Path) -> None:
    wanted = place(marker, tmp_path / "run")
    agree(ask_both(build_opener(tmp_path / "libopener.so", str(tmp_path / "run")), SONAME), wanted, "RUNPATH")


def test_ld_library_path_precedes_runpath(marker: Path, tmp_path: Path) -> None:
    place(marker, tmp_path / "run")
    wanted = place(marker, tmp_path / "env")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    agree(ask_both(opener, SONAME, {"LD_LIBRARY_PATH": str(tmp_path / "env")}), wanted, "LD_LIBRARY_PATH")


def test_rpath_precedes_ld_library_path(marker: Path, tmp_path: Path) -> None:
    wanted = place(marker, tmp_path / "run")
    place(marker, tmp_path / "env")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"), "RPATH")
    agree(ask_both(opener, SONAME, {"LD_LIBRARY_PATH": str(tmp_path / "env")}), wanted, "RPATH")


@cases("$ORIGIN/../nvidia/x/lib", "${ORIGIN}/../nvidia/x/lib", "/no/such:$ORIGIN/../nvidia/x/lib/")
def test_origin_is_the_folder_of_the_opener(marker: Path, tmp_path: Path, origin: str) -> None:
    wanted = place(marker, tmp_path / "site/nvidia/x/lib")
    agree(ask_both(build_opener(tmp_path / "site/tensorflow/libopener.so", origin), SONAME), wanted, "RUNPATH")


def test_origin_is_followed_through_links(marker: Path, tmp_path: Path) -> None:
    wanted = place(marker, tmp_path / "real/nvidia/x/lib")
    place(marker, tmp_path / "site/nvidia/x/lib")  # next to the link, where ".." is another folder
    build_opener(tmp_path / "real/tensorflow/libopener.so", "$ORIGIN/../nvidia/x/lib")
    (tmp_path / "site/tensorflow").symlink_to(tmp_path / "real/tensorflow")
    agree(ask_both(tmp_path / "site/tensorflow/libopener.so", SONAME), wanted, "RUNPATH")


@cases(("lib", "lib"), ("", None), (":", "."), ("/no;lib", "lib"), ("$ORIGIN:lib", "lib"))
def test_forms_of_ld_library_path(marker: Path, tmp_path: Path, value: str, folder: str | None) -> None:
    wanted = place(marker, tmp_path / (folder or "elsewhere"))
    opener = build_opener(tmp_path / "o/libopener.so", None)
    answers = ask_both(opener, SONAME, {"LD_LIBRARY_PATH": value}, cwd=tmp_path)
    if folder is None:
        assert (answers.said, answers.loaded) == (None, [])
    else:
        agree(answers, wanted, "LD_LIBRARY_PATH")


def test_missing(tmp_path: Path) -> None:
    answers = ask_both(build_opener(tmp_path / "libopener.so", str(tmp_path / "run")), SONAME)
    assert (answers.said, answers.loaded) == (None, [])
    assert answers.error == f"{SONAME}: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(("offset", "value"), [(E_MACHINE, AARCH64), (EI_CLASS, 1)])
def test_file_for_another_machine_is_skipped(marker: Path, tmp_path: Path, offset: int, value: int) -> None:
    if offset == E_MACHINE and os.uname().machine == "aarch64":
        value = X86_64
    patch(place(marker, tmp_path / "env"), offset, value)
    wanted = place(marker, tmp_path / "run")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    answers = ask_both(opener, SONAME, {"LD_LIBRARY_PATH": str(tmp_path / "env")})
    agree(answers, wanted, "RUNPATH")
    assert len(answers.skipped) == 1
    assert "another machine" in answers.skipped[0]


def test_broken_link_is_skipped(marker: Path, tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / SONAME).symlink_to("gone")
    wanted = place(marker, tmp_path / "run")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    answers = ask_both(opener, SONAME, {"LD_LIBRARY_PATH": str(tmp_path / "env")})
    agree(answers, wanted, "RUNPATH")
    assert len(answers.skipped) == 1
    assert "link" in answers.skipped[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_skipped(marker: Path, tmp_path: Path) -> None:
    place(marker, tmp_path / "env").chmod(0)
    wanted = place(marker, tmp_path / "run")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    answers = ask_both(opener, SONAME, {"LD_LIBRARY_PATH": str(tmp_path / "env")})
    agree(answers, wanted, "RUNPATH")
    assert [reason.rpartition(": ")[2] for reason in answers.skipped] == ["Permission denied"]


@cases(
    (b"", "file too short", "0 bytes"),
    (b"\x7fELF\x02\x01\x01", "file too short", "7 bytes"),
    (b"INPUT(libother.so)" + b" " * 99, "invalid ELF header", "ELF header"),
    (None, "cannot read file data", "directory"),
)
def test_damaged_file_makes_loader_fail(
    marker: Path, tmp_path: Path, content: bytes | None, loaders_message: str, message: str
) -> None:
    bad = tmp_path / "env" / SONAME
    if content is None:
        bad.mkdir(parents=True)
    else:
        bad.parent.mkdir()
        bad.write_bytes(content)
    place(marker, tmp_path / "run")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    answers = ask_both(opener, SONAME, {"LD_LIBRARY_PATH": str(tmp_path / "env")})
    assert loaders_message in answers.error
    assert answers.loaded == []
    assert (answers.said, answers.found_by) == (str(bad), "LD_LIBRARY_PATH")
    assert message in (answers.trouble or "")


@pytest.mark.skipif(not loader.read_hwcaps(), reason="this loader has no glibc-hwcaps for this machine")
@pytest.mark.parametrize("level", [*loader.read_hwcaps(), "x86-64-v9"])
def test_hwcaps_subfolders_are_searched(marker: Path, tmp_path: Path, level: str) -> None:
    plain = place(marker, tmp_path / "run")
    special = place(marker, tmp_path / "run/glibc-hwcaps" / level)
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    agree(ask_both(opener, SONAME), plain if level == "x86-64-v9" else special, "RUNPATH")


def test_preloaded_library_is_found(marker: Path, tmp_path: Path) -> None:
    wanted = build(tmp_path / "pre/libmarker-of-mine.so.1", soname=SONAME)
    place(marker, tmp_path / "run")
    opener = build_opener(tmp_path / "libopener.so", str(tmp_path / "run"))
    agree(ask_both(opener, SONAME, {"LD_PRELOAD": str(wanted)}), wanted, "LD_PRELOAD")


def test_nodeflib_excludes_default_folders(tmp_path: Path) -> None:
    opener = build(tmp_path / "libopener.so", "int x;", "-Wl,-z,nodefaultlib")
    assert [place.found_by for place in loader.Loader(loader.Opener(str(opener)), {}).places] == []


def test_default_folders_match_the_loader() -> None:
    argv = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libno-such.so.1')"]
    environ = {"PATH": os.defpath, "LD_DEBUG": "libs"}
    said = subprocess.run(argv, capture_output=True, text=True, env=environ, check=False).stderr
    lines = [line for line in said.splitlines() if "(system search path)" in line]
    assert lines, said[-500:]
    folders = re.search(r"search path=(\S+)", lines[-1])
    assert folders
    # The loader may omit missing files from its output after the first search.
    assert [one for one in folders[1].split(":") if "hwcaps" not in one and one in loader.default_folders()]
    assert set(loader.default_folders()) >= {
        one for one in folders[1].split(":") if re.fullmatch(r"(/usr)?/lib\w*", one)
    }


def test_cache_matches_ldconfig() -> None:
    ldconfig = shutil.which("ldconfig", path=f"{os.defpath}:/sbin:/usr/sbin")
    if ldconfig is None or not Path(loader.CACHE_FILE).exists():
        pytest.skip("this system has no loader's cache")
    lines = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    word = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(os.uname().machine, "?")
    expected = {tuple(re.split(r" \(|\) => ", line.strip())[::2]) for line in lines if f",{word}" in line}
    said = {(name, path) for name, entries in loader.read_cache(loader.CACHE_FILE).items() for _, path, _ in entries}
    assert expected
    assert said == expected


@pytest.fixture
def cache(marker: Path, tmp_path: Path) -> Path:
    """A cache with a plain library, and the same one for x86-64-v2."""
    ldconfig = shutil.which("ldconfig", path=f"{os.defpath}:/sbin:/usr/sbin")
    if ldconfig is None:
        pytest.skip("this system has no ldconfig")
    place(marker, tmp_path / "cached")
    place(marker, tmp_path / "cached/glibc-hwcaps/x86-64-v2")
    (tmp_path / "conf").write_text(f"{tmp_path / 'cached'}\n")
    subprocess.run([ldconfig, "-X", "-C", str(tmp_path / "cache"), "-f", str(tmp_path / "conf")], check=True)
    return tmp_path / "cache"


def test_cache_with_hwcaps_subfolders(cache: Path, tmp_path: Path) -> None:
    found = loader.Loader(loader.Opener(str(build_opener(tmp_path / "libopener.so", None))), {}, str(cache)).find(
        SONAME
    )
    below = "glibc-hwcaps/x86-64-v2/" if "x86-64-v2" in loader.read_hwcaps() else ""
    assert (found.path, found.found_by) == (str(tmp_path / f"cached/{below}{SONAME}"), "ld.so.cache")


@pytest.mark.parametrize("length", [0, 10, 30, 47, 60, 100])
def test_damaged_cache_is_ignored(cache: Path, length: int) -> None:
    cache.write_bytes(cache.read_bytes()[:length])
    assert loader.read_cache(str(cache)) == {}


def test_environment_is_that_of_process_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH_OF_A_TEST", "set later")
    assert "LD_LIBRARY_PATH_OF_A_TEST" not in loader.starting_environment(dict(os.environ))
