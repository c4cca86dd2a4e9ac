from belem.runtime.project import code_frame


def test_a_frame_marks_the_line_and_the_column() -> None:
    assert code_frame("a\nb\nc\nd\ne\nf", 3, 1) == (
        "  1 | a\n  2 | b\n> 3 | c\n    | ^\n  4 | d\n  5 | e"
    )


def test_line_numbers_are_aligned() -> None:
    frame = code_frame("\n" * 9 + "x", 9, 1)

    assert frame.splitlines()[2:4] == [">  9 |", "     | ^"]


def test_tabs_keep_the_caret_in_place() -> None:
    assert code_frame("\t\tx", 1, 3) == "> 1 |   x\n    |   ^"


def test_a_long_line_is_shown_around_its_column() -> None:
    frame = code_frame("a" * 1000 + "B" + "c" * 1000, 1, 1001)

    shown, caret = frame.splitlines()
    assert len(shown) < 200
    assert shown[caret.index("^")] == "B"


def test_a_line_outside_the_text_is_drawn_into_it() -> None:
    assert code_frame("a", 9, 1).startswith("> 1 | a")
    assert code_frame("", 0, 1) == "> 1 |\n    | ^"
