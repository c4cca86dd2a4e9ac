"""Top levels that run, log, throw, loop and lie; images that are kept and found again."""

import dataclasses
from pathlib import Path

import pytest

from belem.isolates import (
    Event,
    Guest,
    GuestInvalid,
    Host,
    Limits,
    LoadError,
    LogLine,
    MemoryLimitExceeded,
    Program,
    Script,
)
from belem.isolates.records import pack
from belem.sdk.abi import ToHost, Type
from tests.isolates import wat
from tests.isolates.conftest import JS_WASM


def program(main: str, **modules: str) -> Program:
    named = {f"{name}.js": source for name, source in modules.items()}
    return Program(main="worker.js", modules={"worker.js": main, **named})


async def test_the_top_level_runs_once_and_its_state_is_in_the_image(
    host: Host, mini: Guest
) -> None:
    source = """
        import { word } from "./words.js";
        console.log("loading");
        let n = 41;
        export const fetch = () => `${word} ${++n}`;
    """
    words = "export const word = configuration.word;"
    image = await host.build(
        mini,
        Program(
            main="worker.js",
            modules={"worker.js": source, "words.js": words},
            configuration={"word": "answer"},
        ),
    )

    isolate = host.spawn(image, {}, Limits(), lambda line: None)

    assert image.logs == (LogLine(0, "log", "loading"),)
    assert (await isolate.dispatch(Event("fetch"))).head == "answer 42"


async def test_a_top_level_that_throws_names_the_place(host: Host, mini: Guest) -> None:
    with pytest.raises(LoadError) as caught:
        await host.build(mini, program("const a = 1;\n  throw new RangeError('at start');"))

    error = caught.value
    assert (error.name, error.text) == ("RangeError", "at start")
    assert (error.file, error.line) == ("worker.js", 2)
    assert error.column is not None


async def test_a_syntax_error_names_the_place(host: Host, mini: Guest) -> None:
    with pytest.raises(LoadError) as caught:
        await host.build(mini, program('import "./other.js";', other="let x = 1;\nlet = ;\n"))

    assert caught.value.name == "SyntaxError"
    assert (caught.value.file, caught.value.line) == ("other.js", 2)


async def test_a_missing_module_is_a_load_error(host: Host, mini: Guest) -> None:
    with pytest.raises(LoadError, match="No such module"):
        await host.build(mini, program('import "./gone.js";'))

    with pytest.raises(LoadError, match="not among the modules"):
        await host.build(mini, Program(main="a.js", modules={"b.js": ""}))

    with pytest.raises(LoadError, match="NUL"):
        await host.build(mini, Program(main="a\0b", modules={"a\0b": ""}))


async def test_a_top_level_that_does_not_end_is_stopped(host: Host, mini: Guest) -> None:
    with pytest.raises(LoadError, match="exceeded CPU time limit"):
        await host.build(mini, program("for (;;);"), Limits(startup_cpu_ms=50))


async def test_a_top_level_that_needs_too_much_memory_fails(host: Host, mini: Guest) -> None:
    with pytest.raises(LoadError, match="memory"):
        await host.build(
            mini,
            program("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1));"),
            Limits(memory_bytes=32 << 20),
        )


async def test_a_top_level_may_not_ask_the_host(host: Host, mini: Guest) -> None:
    with pytest.raises(LoadError, match="within global scope"):
        await host.build(mini, program("sleep(1);"))


async def test_a_base_larger_than_the_limit_is_refused(host: Host, mini: Guest) -> None:
    with pytest.raises(MemoryLimitExceeded):
        await host.build(mini, program(""), Limits(memory_bytes=1 << 20))


async def test_the_logs_of_a_top_level_are_bounded(host: Host, mini: Guest) -> None:
    source = "for (let i = 0; i < 1000; i++) console.log('x'.repeat(1000));"

    image = await host.build(mini, program(source), Limits(log_bytes=10_000))

    assert 0 < len(image.logs) <= 10


async def test_the_same_program_is_built_once(host: Host, mini: Guest) -> None:
    first = await host.build(mini, program("export const a = 1;"))
    second = await host.build(mini, program("export const a = 1;"))
    third = await host.build(mini, program("export const a = 2;"))

    assert first is second
    assert third is not first


async def test_another_host_finds_the_image_in_the_cache(
    host: Host, mini: Guest, cache_dir: Path
) -> None:
    source = program("let n = 6; console.log('once'); export const fetch = () => ++n;")
    image = await host.build(mini, source)

    async with Host(cache_dir) as other:
        found = await other.build(mini, source)
        isolate = other.spawn(found, {}, Limits(), lambda line: None)
        head = (await isolate.dispatch(Event("fetch"))).head

    assert head == "7"
    assert (found.key, found.logs) == (image.key, image.logs)


async def test_an_image_from_the_cache_still_meets_the_limit(host: Host, mini: Guest) -> None:
    source = program("export const big = new Uint8Array(20 << 20).fill(1);")
    await host.build(mini, source)

    with pytest.raises(MemoryLimitExceeded):
        await host.build(mini, source, Limits(memory_bytes=16 << 20))


async def test_a_guest_without_an_engine_is_an_error(host: Host, tmp_path: Path) -> None:
    with pytest.raises(GuestInvalid, match="no engine"):
        await host.build(Guest(name="none", wasm=tmp_path / "gone.wasm"), program(""))


async def test_boot_code_that_throws_is_an_error_of_the_guest(host: Host, mini: Guest) -> None:
    broken = dataclasses.replace(mini, scripts=(Script("boot.js", "throw new Error('boom')"),))

    with pytest.raises(GuestInvalid, match="boom"):
        await host.build(broken, program(""))


async def test_built_in_modules_can_be_imported(host: Host, mini: Guest) -> None:
    guest = dataclasses.replace(
        mini, modules=(Script("belem:words", "export const w = 'built in';"),)
    )

    image = await host.build(
        guest, program('import { w } from "belem:words"; export const fetch = () => w;')
    )

    isolate = host.spawn(image, {}, Limits(), lambda line: None)
    assert (await isolate.dispatch(Event("fetch"))).head == "built in"


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ("unreachable", "stopped the engine"),
        ("(i64.const -1)", "broke the protocol"),
        ("(i64.const 0x7fffffff00000010)", "broke the protocol"),
        (f"(i64.const {wat.OUTBOX << 32 | 16})", "broke the protocol"),
    ],
)
async def test_a_guest_that_lies_while_loading_is_refused(
    host: Host, tmp_path: Path, load: str, reason: str
) -> None:
    record = pack(ToHost.REPLY, 1, Type.TEXT)
    text = "".join(f"\\{byte:02x}" for byte in record)
    content = wat.wasm(load=load, extra=f'(data (i32.const {wat.OUTBOX}) "{text}")')

    with pytest.raises(LoadError, match=reason):
        await host.build(wat.guest(tmp_path, content), Program(main="w", modules={"w": ""}))


@pytest.mark.parametrize("inbox", ["(i32.const 0)", "(i32.const -65536)", "unreachable"])
async def test_a_guest_without_an_inbox_is_refused(host: Host, tmp_path: Path, inbox: str) -> None:
    with pytest.raises(GuestInvalid):
        await host.build(
            wat.guest(tmp_path, wat.wasm(inbox=inbox)), Program(main="w", modules={"w": ""})
        )


def test_the_engine_was_built() -> None:
    assert JS_WASM.stat().st_size > 500_000


async def test_a_small_worker_is_kept_as_what_differs_from_its_guest(
    mini: Guest, tmp_path: Path
) -> None:
    async with Host(tmp_path / "code") as fresh:
        small = await fresh.build(mini, program("export const a = 1;"))
        large = await fresh.build(mini, program("export const a = 'x'.repeat(1 << 20) + 'y';"))

    kept = {path.stem: path for path in (tmp_path / "code").iterdir() if path.suffix != ".json"}
    assert small.patch
    assert kept[small.key].suffix == ".patch"
    assert kept[small.key].stat().st_size < 64 << 10
    assert not large.patch
    assert kept[large.key].suffix == ".cwasm"


async def test_a_patched_memory_may_be_larger_than_its_guests(host: Host, mini: Guest) -> None:
    source = "const held = []; for (let i = 0; i < 9; i++) held.push(new Uint8Array(1 << 20));"
    source += "held[8][5] = 7; export const five = () => held[8][5] + held.length;"
    image = await host.build(mini, program(source))
    isolate = host.spawn(image, {}, Limits(), lambda line: None)

    assert image.patch
    assert isolate.memory_bytes == image.memory_bytes
    assert (await isolate.dispatch(Event("five"))).head == "16"
