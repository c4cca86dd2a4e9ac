"""Rejections that nobody handles."""

import pytest

from belem.sdk.abi import ToGuest
from tests.support.js_guest import JsGuest, fault, record

LISTEN = (
    "H.onUnhandled((reason, promise) =>"
    " H.send(50, 0, [String(reason), promise instanceof Promise]))"
)


@pytest.fixture
def listening(guest: JsGuest) -> JsGuest:
    assert guest.load("listen.js", LISTEN) == []
    return guest


def test_a_rejection_is_reported_with_its_promise(listening: JsGuest) -> None:
    (report,) = listening.load("reject.js", "Promise.reject('why')")

    assert report.json() == ["why", True]


@pytest.mark.parametrize(
    "source",
    [
        "Promise.reject(1).catch(() => {})",
        "const p = Promise.reject(1); queueMicrotask(() => p.catch(() => {}))",
        "const p = Promise.reject(1); (async () => { await 0; await 0; try { await p } catch {}"
        " })()",
        "Promise.allSettled([Promise.reject(1), Promise.reject(2)])",
    ],
)
def test_a_rejection_handled_before_the_jobs_end_is_not(listening: JsGuest, source: str) -> None:
    assert listening.load("handled.js", f"{{{source}}}") == []


def test_each_promise_is_reported_once(listening: JsGuest) -> None:
    reports = listening.load("many.js", "for (const r of 'abc') Promise.reject(r); 0")

    assert [r.json() for r in reports] == [["a", True], ["b", True], ["c", True]]
    assert listening.step() == []


def test_a_rejection_in_a_step_is_reported_at_its_end(listening: JsGuest) -> None:
    listening.load("on.js", "H.onRecord((k, id) => { Promise.reject(id); H.send(51) })")

    kinds = [r.kind for r in listening.step(record(ToGuest.EVENT, 1), record(ToGuest.EVENT, 2))]

    assert kinds == [51, 51, 50, 50]


def test_the_handler_may_reject_and_throw(guest: JsGuest) -> None:
    guest.load(
        "listen.js",
        "H.onUnhandled((n) => { if (n > 0) { H.send(50, n); Promise.reject(n - 1) } else throw"
        " new Error('end') })",
    )

    *reports, last = guest.load("reject.js", "Promise.reject(3)")

    assert [r.id for r in reports] == [3, 2, 1]
    assert fault([last])["message"] == "end"


def test_without_a_handler_it_is_a_fault(guest: JsGuest) -> None:
    assert (
        fault(guest.load("reject.js", "Promise.reject(new RangeError('r'))"))["name"]
        == "RangeError"
    )


def test_a_loop_of_caught_rejections_does_not_grow_the_heap(listening: JsGuest) -> None:
    loop = (
        "(async () => { for (let i = 0; i < 20000; i++)"
        " try { await Promise.reject(i) } catch {} })()"
    )
    for _ in range(3):
        assert listening.load("loop.js", loop) == []
    listening.collect()
    before, pages = listening.heap_bytes(), len(listening.memory())

    assert listening.load("loop.js", loop) == []
    listening.collect()

    assert listening.heap_bytes() - before < 2_000
    assert len(listening.memory()) == pages


@pytest.mark.parametrize("setter", ["onUnhandled", "onReject", "onRecord"])
def test_only_functions_are_taken(guest: JsGuest, setter: str) -> None:
    assert guest.throws(f"H.{setter}({{}})") == ("TypeError", "expected a function")
