from pathlib import PurePath

from kdoctor_lint.docs.pages import pages
from kdoctor_lint.registry import RULES


def test_every_rule_has_a_page_that_is_linked() -> None:
    written = pages()
    overview = written.pop("lint.md")
    assert "<!-- " not in overview
    assert [text.split("\n")[0] for text in written.values()] == [f"# {name}" for name in RULES]
    assert [name for name in written if f"(lint/{PurePath(name).name})" not in overview] == []
