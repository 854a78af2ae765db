"""The answered survivors of `make mutants` still exist."""

from pathlib import Path

from helpers.mutants.changes import mutants

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).parent / "equivalent.txt"


def test_answered_mutants_exist_and_have_reasons() -> None:
    lines = [line for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    for line in lines:
        path, code, change, reason = line.split(" | ")
        source = (ROOT / path).read_text(encoding="utf-8")
        text = source.splitlines()
        found = {(text[mutant.line - 1].strip(), mutant.change) for mutant in mutants(source, path)}
        assert (code, change) in found, line
        assert len(reason) > 10
