"""Text to tokens and back, from the vocabulary in a GGUF file."""

import codecs
import re
from collections.abc import Sequence
from typing import Final

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from belem.runtime.inference.errors import BadModelFile
from belem.runtime.inference.text.gguf_file import GgufFile

__all__ = ["Detokenizer", "TextTokenizer"]

_KIND: Final = "gpt2"
_CONTROL: Final = 3
_MAX_MERGES: Final = 1 << 21
_LLAMA3: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class TextTokenizer:
    """Byte-level BPE. Names of control tokens in the text are those tokens, unless marked."""

    def __init__(self, file: GgufFile) -> None:
        kind = file.text("tokenizer.ggml.model")
        if kind != _KIND:
            raise BadModelFile(
                f"{file.path}: tokenizer '{kind[:40]}' is not supported; '{_KIND}' is."
            )
        tokens = file.texts("tokenizer.ggml.tokens")
        kinds = file.integers("tokenizer.ggml.token_type")
        if len(kinds) != len(tokens) or not tokens:
            raise BadModelFile(
                f"{file.path}: {len(tokens)} tokens have {len(kinds)} types; they must be as many."
            )
        self.vocabulary = len(tokens)
        self._bpe = _build(file, tokens)
        self._bytes = _token_bytes(tokens, kinds)
        self.control = {tokens[i]: i for i, kind in enumerate(kinds) if kind == _CONTROL}
        # Longest first: of two that begin alike the longer one is meant.
        names = sorted((n for n in self.control if len(n) > 1), key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        most = self.vocabulary - 1
        self.end = file.integer("tokenizer.ggml.eos_token_id", least=0, most=most)
        self.begin: int | None = None
        if file.flag("tokenizer.ggml.add_bos_token", default=False):
            self.begin = file.integer("tokenizer.ggml.bos_token_id", least=0, most=most)
        turn_ends = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>")
        self.stops = {self.end} | {self.control[name] for name in turn_ends if name in self.control}

    def encode(self, text: str, *, mark: str = "") -> list[int]:
        """Return the tokens of a text in which names of control tokens mean those.

        A `mark` inside a name keeps it from meaning one; it is not part of the text.
        """
        ids = [] if self.begin is None else [self.begin]
        at = 0
        for match in self._control_pattern.finditer(text):
            ids += self._plain(text[at : match.start()], mark)
            ids.append(self.control[match[0]])
            at = match.end()
        ids += self._plain(text[at:], mark)
        # A template may have written the first token itself.
        return ids[1:] if len(ids) > 1 and ids[0] == ids[1] == self.begin else ids

    def token_bytes(self, token: int) -> bytes:
        """Return what a token adds to the text: nothing for control tokens."""
        return self._bytes[token]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of some tokens."""
        return b"".join(map(self.token_bytes, tokens)).decode("utf-8", "replace")

    def _plain(self, text: str, mark: str) -> list[int]:
        if mark:
            text = text.replace(mark, "")
        return list(self._bpe.encode(text, add_special_tokens=False).ids) if text else []


class Detokenizer:
    """Turns tokens into text as they come: whole characters, each as soon as it is whole."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        # Holds back a character's first bytes; bytes that can never be one become U+FFFD.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        """Return the characters that the token completes."""
        return self._decoder.decode(self._tokenizer.token_bytes(token))


def _build(file: GgufFile, tokens: list[str]) -> Tokenizer:
    lines = file.texts("tokenizer.ggml.merges")
    merges = [(left, right) for left, _, right in (line.partition(" ") for line in lines)]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(merges) > _MAX_MERGES:
        raise BadModelFile(f"{file.path}: {len(merges)} merges are over {_MAX_MERGES}.")
    try:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    except Exception as error:  # the library raises Exception itself for a bad merge
        raise BadModelFile(f"{file.path}: the tokenizer's merges are wrong: {error}") from error
    tokenizer.pre_tokenizer = _pre_tokenizer(file)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _pre_tokenizer(file: GgufFile) -> pre_tokenizers.PreTokenizer:
    name = file.text("tokenizer.ggml.pre", "default")
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    match name:
        case "smollm":
            digits = pre_tokenizers.Digits(individual_digits=True)
            return pre_tokenizers.Sequence([digits, by_bytes])
        case "gpt-2" | "default":
            return by_bytes
        case "llama-bpe" | "llama3":
            return pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(_LLAMA3), behavior="isolated"),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            )
        case _:
            raise BadModelFile(f"{file.path}: pre-tokenizer '{name[:40]}' is not supported.")


def _token_bytes(tokens: list[str], kinds: list[int]) -> list[bytes]:
    alphabet = _byte_alphabet()
    table: list[bytes] = []
    for token, kind in zip(tokens, kinds, strict=True):
        if kind == _CONTROL:
            table.append(b"")
        else:
            # A character outside the alphabet stands for itself.
            table.append(
                b"".join(
                    bytes([alphabet[c]]) if c in alphabet else c.encode("utf-8", "replace")
                    for c in token
                )
            )
    return table


def _byte_alphabet() -> dict[str, int]:
    """Return GPT-2's printable stand-ins for the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + i): byte for i, byte in enumerate(others)}
