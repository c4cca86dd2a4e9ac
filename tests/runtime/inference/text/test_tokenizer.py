"""Tokens of texts, and texts of tokens."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.inference.errors import BadModelFile
from belem.runtime.inference.text.gguf_file import GgufFile
from belem.runtime.inference.text.tokenizer import Detokenizer, TextTokenizer
from tests.runtime.inference.tiny_llama import TinyLlama


def load(path: Path) -> TextTokenizer:
    with GgufFile(path) as file:
        return TextTokenizer(file)


@pytest.fixture(scope="module")
def tokenizer(tiny: TinyLlama) -> TextTokenizer:
    return load(tiny.path)


def names(tiny: TinyLlama, ids: list[int]) -> list[str]:
    return [tiny.tokens[token] for token in ids]


def test_merges_are_applied(tokenizer: TextTokenizer, tiny: TinyLlama) -> None:
    assert names(tiny, tokenizer.encode("hello world")) == ["hello", "Ġw", "or", "l", "d"]


def test_digits_are_tokens_of_their_own(tokenizer: TextTokenizer, tiny: TinyLlama) -> None:
    assert names(tiny, tokenizer.encode("2026")) == ["2", "0", "2", "6"]


@given(st.text())
def test_decoding_gives_back_the_text(tokenizer: TextTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_names_of_control_tokens_are_those_tokens(
    tokenizer: TextTokenizer, tiny: TinyLlama
) -> None:
    ids = tokenizer.encode("<|im_start|>he<|im_end|>")

    assert names(tiny, ids) == ["<|im_start|>", "he", "<|im_end|>"]


def test_a_marked_name_is_text_and_the_mark_is_not(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.encode("<\ue000|im_end|>", mark="\ue000")

    assert tokenizer.control["<|im_end|>"] not in ids
    assert tokenizer.decode(ids) == "<|im_end|>"


def test_control_tokens_have_no_text(tokenizer: TextTokenizer) -> None:
    assert tokenizer.decode([tokenizer.control["<|im_end|>"]]) == ""


def test_the_turns_end_and_the_end_of_text_stop(tokenizer: TextTokenizer) -> None:
    assert tokenizer.stops == {0, 2}


def test_a_first_token_is_put_in_front_once(tmp_path: Path) -> None:
    wanted = {"tokenizer.ggml.add_bos_token": True}
    tokenizer = load(TinyLlama(metadata=wanted).write(tmp_path / "bos.gguf"))

    assert tokenizer.encode("he")[0] == 1
    assert tokenizer.encode("<|im_start|>he") == tokenizer.encode("he")


@pytest.mark.parametrize("pre", ["gpt-2", "default", "llama-bpe"])
def test_other_ways_to_split_words_are_known(tmp_path: Path, pre: str) -> None:
    path = TinyLlama(metadata={"tokenizer.ggml.pre": pre}).write(tmp_path / "pre.gguf")

    tokenizer = load(path)

    assert tokenizer.decode(tokenizer.encode("It's 2026,\n\nhello")) == "It's 2026,\n\nhello"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"tokenizer.ggml.model": "llama"}, "tokenizer 'llama' is not supported"),
        ({"tokenizer.ggml.pre": "qwen2"}, "pre-tokenizer 'qwen2' is not supported"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "have 2 types"),
        ({"tokenizer.ggml.eos_token_id": 5_000_000}, "eos_token_id is 5000000"),
        ({"tokenizer.ggml.merges": ["he llo-that-is-no-token"]}, "merges are wrong"),
    ],
)
def test_a_vocabulary_that_is_wrong_is_refused(
    tmp_path: Path, metadata: dict[str, Any], message: str
) -> None:
    path = TinyLlama(metadata=metadata).write(tmp_path / "odd.gguf")

    with pytest.raises(BadModelFile, match=message):
        load(path)


def test_text_comes_in_whole_characters_as_soon_as_they_are_whole(
    tokenizer: TextTokenizer,
) -> None:
    detokenizer = Detokenizer(tokenizer)
    ids = tokenizer.encode("é€🦦!")  # 2, 3, 4 and 1 bytes, each a token

    pieces = [detokenizer.feed(token) for token in ids]

    assert pieces == ["", "é", "", "", "€", "", "", "", "🦦", "!"]


def test_bytes_that_are_no_character_do_not_hold_back_what_follows(
    tokenizer: TextTokenizer,
) -> None:
    detokenizer = Detokenizer(tokenizer)
    broken = tokenizer.encode("€")[:2]

    pieces = [detokenizer.feed(token) for token in [*broken, *tokenizer.encode("ab")]]

    assert pieces == ["", "", "\ufffda", "b"]
