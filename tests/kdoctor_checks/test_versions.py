from kdoctor_checks._versions import first_short


def test_first_text_that_fits_a_short_line_is_used_else_the_last() -> None:
    assert first_short("a" * 200, "short", "b") == "short"
    assert first_short("a" * 200, "b" * 200, "c" * 200) == "c" * 200
