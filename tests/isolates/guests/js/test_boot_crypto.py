"""Randomness differs from isolate to isolate."""

from tests.support.javascript import JavaScript


async def test_isolates_of_one_image_draw_different_numbers(js: JavaScript) -> None:
    body = "return [crypto.randomUUID(), Math.random()]"

    first, second = await js.value(body), await js.value(body)

    assert first[0] != second[0]
    assert first[1] != second[1]
