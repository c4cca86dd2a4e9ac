"""Choosing tokens."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from belem.runtime.inference.text.backend import Logits
from belem.runtime.inference.text.sampling import Sampler, Sampling

LOGITS: Logits = np.log(np.array([0.05, 0.5, 0.15, 0.3], np.float32))


def draw(sampling: Sampling, count: int = 2000, logits: Logits = LOGITS) -> Counter[int]:
    sampler = Sampler(sampling)
    return Counter(sampler.choose(logits) for _ in range(count))


def test_temperature_zero_takes_the_likeliest() -> None:
    assert draw(Sampling(temperature=0, seed=1), 20) == {1: 20}


def test_equal_logits_are_taken_in_the_order_of_tokens() -> None:
    assert Sampler(Sampling()).choose(np.array([1, 3, 3], np.float32)) == 1


def test_temperature_one_draws_by_likelihood() -> None:
    drawn = draw(Sampling(temperature=1, seed=4), 8000)

    for token, share in enumerate([0.05, 0.5, 0.15, 0.3]):
        assert drawn[token] / 8000 == pytest.approx(share, abs=0.02)


def test_a_low_temperature_sharpens_and_a_high_one_flattens() -> None:
    cold, hot = draw(Sampling(temperature=0.2, seed=4)), draw(Sampling(temperature=5, seed=4))

    assert cold[1] > 1800
    assert hot[0] > 300


def test_top_k_leaves_the_k_likeliest() -> None:
    assert set(draw(Sampling(temperature=1, top_k=2, seed=4))) == {1, 3}


def test_top_p_leaves_the_fewest_that_reach_the_share() -> None:
    assert set(draw(Sampling(temperature=1, top_p=0.6, seed=4))) == {1, 3}
    assert set(draw(Sampling(temperature=1, top_p=0.4, seed=4))) == {1}


@pytest.mark.parametrize("top_p", [0.0, 1.0, 2.0])
def test_top_p_of_none_or_all_leaves_everything(top_p: float) -> None:
    assert set(draw(Sampling(temperature=1, top_p=top_p, seed=4))) == {0, 1, 2, 3}


def test_the_same_seed_draws_the_same() -> None:
    options = Sampling(temperature=1, seed=9)
    one, two = Sampler(options), Sampler(options)

    assert [one.choose(LOGITS) for _ in range(50)] == [two.choose(LOGITS) for _ in range(50)]


def test_no_seed_draws_differently_each_time() -> None:
    one, two = Sampler(Sampling(temperature=5)), Sampler(Sampling(temperature=5))

    assert [one.choose(LOGITS) for _ in range(60)] != [two.choose(LOGITS) for _ in range(60)]


def test_rounding_of_the_logits_does_not_move_the_choice() -> None:
    random = np.random.default_rng(3)
    logits = random.standard_normal((200, 5000)).astype(np.float32)
    noise = 1e-6 * random.standard_normal(logits.shape).astype(np.float32)
    options = Sampling(temperature=0.8, top_k=40, seed=2)
    one, two = Sampler(options), Sampler(options)

    assert [one.choose(row) for row in logits] == [two.choose(row) for row in logits + noise]


@given(
    arrays(np.float32, st.integers(1, 60), elements=st.floats(-80, 80, width=32)),
    st.floats(0, 5),
    st.integers(0, 50),
    st.floats(0, 2),
)
def test_the_choice_is_always_a_token(
    logits: Logits, temperature: float, top_k: int, top_p: float
) -> None:
    options = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=1)

    assert 0 <= Sampler(options).choose(logits) < len(logits)
