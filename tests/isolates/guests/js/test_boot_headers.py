"""Headers on the wire, and on objects that are none."""

from tests.support.javascript import JavaScript


async def test_methods_need_their_own_kind_of_object(js: JavaScript) -> None:
    name, message = await js.thrown("Headers.prototype.get.call({}, 'a')")

    assert name == "TypeError"
    assert message.startswith("Illegal invocation")


async def test_header_values_cross_the_wire_as_utf8(js: JavaScript) -> None:
    source = """export default { fetch(request) {
      return new Response(request.headers.get("x-in"), { headers: { "x-out": "é☃" } });
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch(headers=[("x-in", "ü☃".encode().decode("latin-1"))])

    assert answer.text == "ü☃"
    assert (answer.header("x-out") or "").encode("latin-1").decode() == "é☃"
