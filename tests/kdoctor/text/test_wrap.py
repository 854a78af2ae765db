import shutil
import subprocess

import pytest

from kdoctor.text.wrap import command_lines, wrap


def test_lines_break_between_words() -> None:
    assert wrap("run `one two three` ", 9) == ["run", "`one two three`"]
    assert wrap("one two  three\nfour", 9) == ["one two", "three", "four"]


def test_first_and_other_lines_have_their_own_start() -> None:
    assert wrap("one two three", 9, first="- ", rest="    ") == ["- one two", "    three"]
    assert wrap("one two", 6, first="> ") == ["> one", "> two"]


@pytest.mark.parametrize("word", ["/a/long/path/that/does/not/fit", "--a-long-option-with-hyphens"])
def test_long_word_stays_whole(word: str) -> None:
    assert wrap(f"see {word} here", 10, first="  ") == ["  see", f"  {word}", "  here"]


def test_mark_of_a_cut_text_stays_with_its_word() -> None:
    assert wrap("one two ...", 8) == ["one", "two ..."]


def test_wide_characters_take_two_columns() -> None:
    assert wrap("日本語 日本語", 13) == ["日本語 日本語"]
    assert wrap("日本語 日本語", 12) == ["日本語", "日本語"]


@pytest.mark.skipif(shutil.which("sh") is None, reason="the shell of Linux and macOS decides")
@pytest.mark.parametrize(
    "command",
    [
        'echo \'two words\' one "and $HOME" \'a (b) "c"\' \\"d e\\"',
        'A="$(echo -c \'x y;z("p q")\' )${HOME:+:$HOME}"; echo "$A"',
        "echo 'one word that is wider than the line' '' \"\"",
    ],
)
def test_broken_command_does_the_same(command: str) -> None:
    broken = "\n".join(command_lines(command, 20))
    done = [subprocess.run(["sh", "-c", text], capture_output=True, check=True).stdout for text in (command, broken)]
    assert done[0] == done[1] != b""
    assert broken.count(" \\\n") > 1
    assert command_lines(command, 200) == [f"    {command}"]


def test_empty_text_has_no_lines() -> None:
    assert wrap(" \n ") == []


def test_own_lines_and_their_indentation_are_kept_on_request() -> None:
    stack = "Thread 1:\n  File x\n\n\tline that is long"
    assert wrap(stack, 14, first="* ", rest="  ", lines=True) == [
        "* Thread 1:",
        "    File x",
        "",
        "      line",
        "  that is long",
    ]
