import pytest

import belem.isolates as isolates
from belem.isolates import (
    CpuLimitExceeded,
    GuestHung,
    GuestThrew,
    IsolateBusy,
    IsolateLost,
    MemoryLimitExceeded,
)
from belem.runtime.server.errors import BadReply, BodyTooLarge, NoSuchWorker, WorkerUnavailable
from belem.runtime.server.failures import Outcome, describe
from belem.sdk import BelemError


@pytest.mark.parametrize(
    ("error", "status", "code", "outcome"),
    [
        (GuestThrew("TypeError", "x"), 500, 1101, Outcome.EXCEPTION),
        (GuestThrew("TypeError", "x", pass_through=True), 502, 1101, Outcome.EXCEPTION),
        (GuestHung(), 500, 1101, Outcome.EXCEPTION),
        (CpuLimitExceeded(31, 30), 503, 1102, Outcome.EXCEEDED_CPU),
        (MemoryLimitExceeded(1 << 27), 503, 1102, Outcome.EXCEEDED_MEMORY),
        (IsolateLost("trap"), 503, 1105, Outcome.UNKNOWN),
        (BadReply("x"), 500, 1101, Outcome.EXCEPTION),
        (NoSuchWorker("x"), 404, None, Outcome.NOT_FOUND),
        (BodyTooLarge("x"), 413, None, Outcome.REFUSED),
        (WorkerUnavailable("x"), 503, None, Outcome.REFUSED),
        (IsolateBusy("x"), 503, None, Outcome.REFUSED),
        (ZeroDivisionError("x"), 500, None, Outcome.UNKNOWN),
    ],
)
def test_each_error_has_a_status_a_code_and_an_outcome(
    error: Exception, status: int, code: int | None, outcome: Outcome
) -> None:
    failure = describe(error)

    assert (failure.status, failure.error_code, failure.outcome) == (status, code, outcome)


def test_no_error_of_a_running_isolate_is_called_internal() -> None:
    covered = {"GuestInvalid", "LoadError", "GuestThrew"}  # two at start, one above
    exported = (getattr(isolates, name) for name in isolates.__all__ if name not in covered)
    errors = [kind for kind in exported if isinstance(kind, type) and issubclass(kind, BelemError)]

    assert len(errors) >= 5
    for kind in errors:
        assert describe(kind.__new__(kind)).title != "Internal error", kind


def test_a_program_error_is_not_shown() -> None:
    failure = describe(RuntimeError("password is hunter2"))

    assert "hunter2" not in failure.happened + failure.advice + failure.title


def test_passing_through_says_that_there_is_no_origin() -> None:
    failure = describe(GuestThrew("Error", "x", pass_through=True))

    assert "no origin" in failure.happened
