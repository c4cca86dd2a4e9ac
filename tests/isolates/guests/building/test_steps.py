"""What is shown of a build."""

import pytest

from belem.isolates.guests.building import PlainSteps, steps_for_terminal


def test_a_log_gets_a_line_when_a_step_begins_and_one_when_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = steps_for_terminal()  # captured standard error is no terminal

    with steps.step("Compiling"):
        steps.note("half way")

    assert isinstance(steps, PlainSteps)
    begin, note, end = capsys.readouterr().err.splitlines()
    assert begin == "Compiling …"
    assert note == "half way"
    assert end.startswith("Compiling: ")


def test_a_failed_step_is_not_called_done(capsys: pytest.CaptureFixture[str]) -> None:
    steps = PlainSteps()

    with pytest.raises(ValueError, match="broken"), steps.step("Compiling"):
        raise ValueError("broken")

    assert capsys.readouterr().err == "Compiling …\n"
