from pathlib import Path

import pytest

from belem.isolates import Host, LoadError, Program
from belem.isolates.guests.js import javascript
from belem.runtime.project import Builder, Bundle, Position, load_project, locate, map_stack
from tests.runtime.project.conftest import WriteFiles

BOOM = """\
interface Options { loud: boolean }
type Sound = "boom" | "bang";


export function boom(sound: Sound, options?: Options): never {
  const é: string = "ééé"; if (options?.loud) throw new TypeError(sound + é);
  throw new RangeError(sound);
}
"""


@pytest.fixture
def bundle(builder: Builder, write: WriteFiles) -> Bundle:
    root = write(
        {
            "index.ts": 'import { boom } from "./lib/boom";\nimport "./é (1).js";\n'
            "enum Level {\n  Low, High\n}\n\nboom('boom' as const, { loud: Level.High === 1 });\n",
            "lib/boom.ts": BOOM,
            "é (1).js": "/* é */ export const plain = 1;\n",
        }
    )
    return builder.build(load_project(root / "index.ts"))


async def test_the_stack_of_the_real_guest_leads_to_the_source(
    bundle: Bundle, tmp_path: Path
) -> None:
    program = Program(main=bundle.main, modules=bundle.modules)

    async with Host(cache_dir=tmp_path / "cache") as host:
        with pytest.raises(LoadError, match="boom") as caught:
            await host.build(javascript(), program)

    lines = map_stack(bundle, caught.value.stack).rstrip().split("\n")
    assert lines[0] == f"    at boom (lib/boom.ts:6:{BOOM.splitlines()[5].index('é);') + 1})"
    assert lines[1].startswith("    at <anonymous> (index.ts:7:")


def test_columns_are_counted_in_characters(bundle: Bundle) -> None:
    # `é` is one character and two bytes.
    assert locate(bundle, "é (1).js", 1, 10) == Position("é (1).js", 1, 9)
    assert locate(bundle, "é (1).js", 9, 10) == Position("é (1).js", 9, 1)


def test_names_with_spaces_and_parentheses_are_read(bundle: Bundle) -> None:
    stack = "    at f (é (1).js:1:10)\n    at é (1).js:1:1"

    assert map_stack(bundle, stack) == "    at f (é (1).js:1:9)\n    at é (1).js:1:1"


def test_other_lines_stay_as_they_are(bundle: Bundle) -> None:
    stack = (
        "TypeError: at index.ts:1:1\n    at map (native)\n    at x (boot.js:1:2)\n    at index.ts\n"
    )

    assert map_stack(bundle, stack) == stack


def test_huge_numbers_are_read(bundle: Bundle) -> None:
    stack = "    at f (index.ts:999999999:999999999)\n    at f (index.ts:99999999999:1)"

    assert map_stack(bundle, stack).split("\n")[1] == "    at f (index.ts:99999999999:1)"
