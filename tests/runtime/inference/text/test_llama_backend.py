"""The compiled graphs against a reference in NumPy, and the promises of a text backend."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from belem.runtime.inference.device import Device
from belem.runtime.inference.errors import InferenceFailed, InsufficientMemory
from belem.runtime.inference.text.backend import Row
from belem.runtime.inference.text.llama_backend import LlamaBackend
from belem.runtime.inference.text.llama_graph import WeightFormat
from tests.runtime.inference.tiny_llama import TinyLlama

PROMPT = [5, 80, 3, 200, 41, 7, 7, 120, 9, 64, 33]
OTHER = [17, 2, 99, 150, 31]

MakeBackend = Callable[..., LlamaBackend]


@pytest.fixture(scope="module")
def make(cpu: Device) -> MakeBackend:
    def make(
        path: Path, weights: WeightFormat = "float32", slots: int = 3, context_tokens: int = 96
    ) -> LlamaBackend:
        return LlamaBackend(
            path,
            device=cpu,
            slots=slots,
            context_tokens=context_tokens,
            weights=weights,
            chunks=(4, 16),
        )

    return make


@pytest.fixture(scope="module")
def backend(tiny: TinyLlama, make: MakeBackend) -> LlamaBackend:
    return make(tiny.path)


def test_prefill_computes_what_the_reference_does(backend: LlamaBackend, tiny: TinyLlama) -> None:
    logits = backend.prefill(0, 0, PROMPT)

    np.testing.assert_allclose(logits, tiny.logits(PROMPT)[-1], rtol=2e-5, atol=2e-5)


def test_a_prompt_over_the_largest_chunk_is_fed_in_parts(
    backend: LlamaBackend, tiny: TinyLlama
) -> None:
    prompt = [(7 * i) % 250 + 3 for i in range(37)]

    logits = backend.prefill(0, 0, prompt)

    np.testing.assert_allclose(logits, tiny.logits(prompt)[-1], rtol=2e-5, atol=2e-5)


def test_decoding_step_by_step_computes_what_the_reference_does(
    backend: LlamaBackend, tiny: TinyLlama
) -> None:
    backend.prefill(0, 0, PROMPT[:1])

    steps = [
        backend.decode([Row(0, position, token)])[0]
        for position, token in enumerate(PROMPT)
        if position > 0
    ]

    np.testing.assert_allclose(np.stack(steps), tiny.logits(PROMPT)[1:], rtol=2e-5, atol=2e-5)


def test_rows_of_a_batch_compute_what_they_compute_alone(backend: LlamaBackend) -> None:
    for slot, prompt in enumerate((PROMPT, OTHER, PROMPT[2:])):
        backend.prefill(slot, 0, prompt)
    rows = [Row(0, len(PROMPT), 77), Row(1, len(OTHER), 12), Row(2, len(PROMPT) - 2, 8)]

    together = backend.decode(rows)
    alone = np.concatenate([backend.decode([row]) for row in rows])

    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(together.argmax(-1), alone.argmax(-1))


def test_a_slot_does_not_see_its_neighbours(backend: LlamaBackend, tiny: TinyLlama) -> None:
    backend.prefill(0, 0, PROMPT)
    backend.prefill(1, 0, OTHER)

    logits = backend.decode([Row(0, len(PROMPT), 30)])[0]

    expected = tiny.logits([*PROMPT, 30])[-1]
    np.testing.assert_allclose(logits, expected, rtol=2e-5, atol=2e-5)


def test_feeding_a_position_again_forgets_what_was_behind_it(
    backend: LlamaBackend, tiny: TinyLlama
) -> None:
    backend.prefill(0, 0, PROMPT)

    logits = backend.prefill(0, 4, OTHER)

    expected = tiny.logits([*PROMPT[:4], *OTHER])[-1]
    np.testing.assert_allclose(logits, expected, rtol=2e-5, atol=2e-5)


def test_the_last_position_of_the_context_can_be_filled(
    backend: LlamaBackend, tiny: TinyLlama
) -> None:
    sequence = [(11 * i) % 250 + 3 for i in range(backend.context_tokens)]
    backend.prefill(0, 0, sequence[:-2])

    # Two tokens in a bucket of four: the padding reaches behind the context.
    logits = backend.prefill(0, len(sequence) - 2, sequence[-2:])

    np.testing.assert_allclose(logits, tiny.logits(sequence)[-1], rtol=5e-5, atol=5e-5)


def test_an_output_matrix_of_its_own_is_used(tmp_path: Path, make: MakeBackend) -> None:
    model = TinyLlama(tied=False, seed=5)
    backend = make(model.write(tmp_path / "untied.gguf"))

    logits = backend.prefill(0, 0, PROMPT)

    np.testing.assert_allclose(logits, model.logits(PROMPT)[-1], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("weights", "share"), [("int8", 0.03), ("bfloat16", 0.05)])
def test_narrow_weights_compute_nearly_the_same(
    weights: WeightFormat, share: float, tiny: TinyLlama, make: MakeBackend
) -> None:
    backend = make(tiny.path, weights)
    expected = tiny.logits([*PROMPT, 30])

    prefilled = backend.prefill(0, 0, PROMPT)
    decoded = backend.decode([Row(0, len(PROMPT), 30)])[0]

    scale = float(np.abs(expected).max())
    assert np.abs(prefilled - expected[-2]).max() < share * scale
    assert np.abs(decoded - expected[-1]).max() < share * scale


def test_narrow_weights_take_less_memory(tiny: TinyLlama, make: MakeBackend) -> None:
    assert make(tiny.path, "int8").bytes < make(tiny.path, "bfloat16").bytes
    assert make(tiny.path, "bfloat16").bytes < make(tiny.path, "float32").bytes


def test_the_context_is_the_smaller_of_the_models_and_the_limit(
    tiny: TinyLlama, make: MakeBackend
) -> None:
    assert make(tiny.path, context_tokens=1000).context_tokens == tiny.context_tokens
    assert make(tiny.path, context_tokens=32).context_tokens == 32


def test_warming_up_leaves_nothing_to_compile(tiny: TinyLlama, make: MakeBackend) -> None:
    backend = make(tiny.path, slots=2)
    for job in [*backend.warm_ups(long=False), *backend.warm_ups(long=True)]:
        job()
    compiled = backend.compiled_count

    backend.prefill(0, 0, PROMPT)
    backend.prefill(1, 0, [4] * 40)
    backend.decode([Row(0, len(PROMPT), 5), Row(1, 40, 5)])
    backend.decode([Row(1, 41, 5)])

    assert backend.compiled_count == compiled


def test_a_cache_over_the_free_memory_is_refused_before_it_is_made(
    tmp_path: Path, make: MakeBackend
) -> None:
    path = TinyLlama(context_tokens=1 << 24).write(tmp_path / "long.gguf")

    with pytest.raises(InsufficientMemory, match=r"long\.gguf needs \d+ MB; \d+ MB are free"):
        make(path, slots=64, context_tokens=1 << 24)


def test_an_empty_chunk_is_refused(backend: LlamaBackend) -> None:
    with pytest.raises(InferenceFailed, match="no token"):
        backend.prefill(0, 0, [])
