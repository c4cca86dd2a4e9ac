from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.project.alignment import Alignment
from belem.runtime.project.positions import Position
from belem.runtime.project.tokens import Kind, Lines, tokenize
from belem.runtime.project.transform import TYPESCRIPT, Transformer

SOURCE = """\
import { first, type Unused } from './first';
import type { Other } from "./other";

/** Says what a thing is. */
export interface Thing<T extends object = {}> {
  name: string; parts?: Thing<T>[]; size(): number;
}
enum Level { Low = 1, High = Low << 2 }
type Handler = (request: Request, env: { AI: any }) => Promise<Response>;

abstract class Base<T> {
  protected abstract kind: string;
  constructor(private readonly inner: Map<string, T>, public level = Level.Low) {}
  get<K extends string>(key: K): T | undefined { return this.inner.get(key as string)!; }
}

class Store extends Base<number> implements Iterable<number> {
  kind = 'store';
  static #count = 0;
  declare later: string;
  *[Symbol.iterator](): IterableIterator<number> { yield* [1, 2, 3]; }
  boom(this: Store, why: string): never { throw new TypeError(`no ${why satisfies string}`); }
}

export default {
  async fetch(request: Request, env: any): Promise<Response> {
    const { prompt } = (await request.json()) as { prompt: string };

    const store = new Store(new Map<string, number>(), Level.High);
    const pick = <T,>(value: T): T => value;
    if (pick<string>(prompt) === 'boom') store.boom("way");
    return new Response(first(prompt));
  },
} satisfies { fetch: Handler };
"""


def test_every_word_of_the_output_leads_to_the_same_word(transformer: Transformer) -> None:
    output = transformer("a.ts", SOURCE, TYPESCRIPT)
    alignment = Alignment("a.ts", SOURCE, output)
    lines, source_lines = Lines(output), Lines(SOURCE)
    words = [token.text for token in tokenize(output) if token.kind is Kind.NAME]
    unique = {word for word in words if words.count(word) == SOURCE.count(word) == 1}

    checked = 0
    for token in tokenize(output):
        if token.text in unique:
            place = alignment.original(*lines.at(token.start))
            assert place is not None
            assert source_lines.at(SOURCE.index(token.text)) == (place.line, place.column), token
            checked += 1

    assert checked >= 10


def test_the_order_of_the_source_is_kept(transformer: Transformer) -> None:
    output = transformer("a.ts", SOURCE, TYPESCRIPT)
    alignment = Alignment("a.ts", SOURCE, output)

    places = [alignment.original(*Lines(output).at(token.start)) for token in tokenize(output)]

    found = [(place.line, place.column) for place in places if place]
    assert found == sorted(found)
    assert len(found) == len(places)


def test_a_place_between_tokens_leads_to_the_one_before(transformer: Transformer) -> None:
    output = transformer("a.ts", SOURCE, TYPESCRIPT)
    alignment = Alignment("a.ts", SOURCE, output)
    line, column = Lines(output).at(output.index("new TypeError"))

    place = alignment.original(line, column + len("new Type"))

    assert place is not None
    assert SOURCE.splitlines()[place.line - 1][place.column - 1 :].startswith("TypeError")


def test_a_place_outside_the_text_leads_to_its_nearest_end() -> None:
    alignment = Alignment("a.ts", "type A = 1;\nlet a = 1", "let a = 1")

    assert alignment.original(1, 1) == Position("a.ts", 2, 1)
    assert alignment.original(99, 99) == Position("a.ts", 2, 9)
    assert alignment.original(0, 0) == Position("a.ts", 2, 1)


def test_an_empty_text_has_no_places() -> None:
    assert Alignment("a.ts", "type A = 1;", "").original(1, 1) is None
    assert Alignment("a.ts", "", "a").original(1, 1) is None


def test_a_long_file_is_aligned_to_its_end(transformer: Transformer) -> None:
    block = (
        "export function f{0}(a: number, b?: Map<string, {{ c: T{0} }}>): T{0} {{ return g(a); }}\n"
    )
    types = "interface T{0} {{ return: string; g(a: number): void }}\n"
    source = "".join(types.format(n) + block.format(n) for n in range(800))
    output = transformer("a.ts", source, TYPESCRIPT)
    alignment = Alignment("a.ts", source, output)

    place = alignment.original(*Lines(output).at(output.index("f799")))

    assert place == Position("a.ts", 1600, 17)


@given(st.lists(st.sampled_from("abcd(){};"), max_size=60), st.data())
def test_any_two_texts_are_aligned_in_order(words: list[str], data: st.DataObject) -> None:
    kept = [word for word in words if data.draw(st.booleans())]
    source, output = " ".join(words), " ".join(kept + data.draw(st.lists(st.sampled_from("ab;"))))
    alignment = Alignment("a.ts", source, output)

    places = [alignment.original(1, column) for column in range(1, len(output) + 1, 2)]

    columns = [place.column for place in places if place]
    assert columns == sorted(columns)
    assert all(column <= max(len(source), 1) for column in columns)
