"""What a fetch event is made of only when somebody asks for it."""

import pytest

from belem.isolates import GuestThrew
from tests.support.javascript import JavaScript


async def test_a_response_of_a_text_can_be_looked_at_before_it_is_sent(js: JavaScript) -> None:
    source = """export default { async fetch() {
      const response = new Response("a\\ud800é");
      const seen = [response.status, response.statusText, response.headers.get("content-type"),
        response.bodyUsed, response instanceof Response, Object.prototype.toString.call(response)];
      response.headers.set("x-seen", seen.join());
      return response;
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch()

    assert answer.text == "a\ufffdé"
    assert answer.header("x-seen") == (
        "200,OK,text/plain;charset=UTF-8,false,true,[object Response]"
    )


async def test_a_response_of_a_text_can_be_sent_once(js: JavaScript) -> None:
    source = """let kept; export default { async fetch() {
      if (kept === undefined) return (kept = new Response("first"));
      try { await kept.text() } catch (error) {
        return new Response([kept.bodyUsed, kept.status, error.name].join());
      }
    } };"""

    async with js.worker(source) as worker:
        first, second = await worker.fetch(), await worker.fetch()

    assert (first.text, second.text) == ("first", "true,200,TypeError")


async def test_a_response_that_was_sent_is_refused(js: JavaScript) -> None:
    source = """let kept; export default { fetch() { return (kept ??= new Response("x")); } };"""

    async with js.worker(source) as worker:
        await worker.fetch()
        with pytest.raises(GuestThrew, match="Body has already been used"):
            await worker.fetch()


async def test_ctx_and_request_outlive_their_request(js: JavaScript) -> None:
    source = """let kept; export default { async fetch(request, env, ctx) {
      if (kept === undefined) { kept = [request, ctx]; return new Response(""); }
      const [earlier, context] = kept;
      context.waitUntil(Promise.resolve());
      return new Response([earlier.method, earlier.url, earlier.signal.aborted].join());
    } };"""

    async with js.worker(source) as worker:
        await worker.fetch("http://a.test/x", method="PUT")
        assert (await worker.fetch()).text == "PUT,http://a.test/x,false"


async def test_subclasses_of_platform_classes(js: JavaScript) -> None:
    source = """class Mine extends Response { constructor(text) { super(text); this.own = 1; } };
    class Asked extends Request {};
    export default { fetch(request) {
      const mine = new Mine("mine"), asked = new Asked(request, { method: "POST", body: "b" });
      const plain = (() => { try { Response("x") } catch (error) { return error.name } })();
      mine.headers.set("x-seen", [mine instanceof Response, mine.own, asked.method, plain].join());
      return mine;
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch()

    assert answer.text == "mine"
    assert answer.header("x-seen") == "true,1,POST,TypeError"


async def test_headers_are_found_without_taking_the_list_apart(js: JavaScript) -> None:
    source = """export default { fetch({ headers }) {
      return Response.json([headers.get("A"), headers.get("b"), headers.get("ccc"),
        headers.get("c"), headers.get("not-there"), headers.has("b")]);
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch(headers=[("a", "1:2"), ("b", "x"), ("b", "y"), ("cc", "z")])

    assert answer.text == '["1:2","x, y",null,null,null,true]'


async def test_a_flood_of_lines_stops_crossing_in_the_guest(js: JavaScript) -> None:
    source = """export default { fetch() {
      for (let i = 0; i < 100000; i++) console.log("x".repeat(1000));
      return new Response("");
    } };"""

    async with js.worker(source) as worker:
        await worker.fetch()
        texts = [text for _, text in worker.logged]

    assert 250 < len(texts) < 300
    assert "Log size limit exceeded" in texts[-1]
