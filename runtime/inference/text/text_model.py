"""A loaded text model: tokenizer, template, backend and scheduler as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from belem.runtime.inference.device import Device, DeviceThread
from belem.runtime.inference.errors import BadModelFile, BadRequest, ContextOverflow
from belem.runtime.inference.text.chat_template import ChatTemplate, Message
from belem.runtime.inference.text.engine import Engine, Generation, GenerationSpec
from belem.runtime.inference.text.gguf_file import GgufFile
from belem.runtime.inference.text.llama_backend import LlamaBackend
from belem.runtime.inference.text.sampling import Sampling
from belem.runtime.inference.text.tokenizer import Detokenizer, TextTokenizer

__all__ = ["TextLimits", "TextModel"]

_PLAIN_TEMPLATE: Final = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
)


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How much one model may hold at a time."""

    slots: int = 4
    context_tokens: int = 2048
    max_waiting: int = 64


class TextModel:
    """What answers text generation. Preparing prompts blocks; the rest does not."""

    def __init__(self, path: Path, *, device: Device, thread: DeviceThread, limits: TextLimits):
        with GgufFile(path) as file:
            self._tokenizer = TextTokenizer(file)
            variables = {"eos_token": _name(self._tokenizer, self._tokenizer.end)}
            if self._tokenizer.begin is not None:
                variables["bos_token"] = _name(self._tokenizer, self._tokenizer.begin)
            self._template = ChatTemplate(
                file.text("tokenizer.chat_template", _PLAIN_TEMPLATE),
                list(self._tokenizer.control),
                variables=variables,
            )
        self.backend = LlamaBackend(
            path, device=device, slots=limits.slots, context_tokens=limits.context_tokens
        )
        if self.backend.vocabulary != self._tokenizer.vocabulary:
            raise BadModelFile(
                f"{path}: the model knows {self.backend.vocabulary} tokens, the tokenizer "
                f"{self._tokenizer.vocabulary}."
            )
        self._engine = Engine(self.backend, thread, max_waiting=limits.max_waiting)

    def prepare_messages(self, messages: Sequence[Message]) -> list[int]:
        """Return the prompt for a conversation. Blocks: render and tokenise off the loop."""
        rendered = self._template.render(messages)
        return self._tokenizer.encode(rendered.text, mark=rendered.mark)

    def prepare_raw(self, prompt: str) -> list[int]:
        """Return a prompt as it is, in which names of control tokens mean those. Blocks."""
        return self._tokenizer.encode(prompt)

    def generate(self, prompt: Sequence[int], *, max_tokens: int, sampling: Sampling) -> Generation:
        """Queue a generation of as many tokens as were asked for and still fit."""
        if not prompt:
            raise BadRequest("The prompt is empty; it must have at least one token.")
        room = self.backend.context_tokens - len(prompt)
        if room < 1:
            raise ContextOverflow(
                context_tokens=self.backend.context_tokens,
                prompt_tokens=len(prompt),
                max_tokens=max_tokens,
            )
        stops = frozenset(self._tokenizer.stops)
        return self._engine.submit(GenerationSpec(prompt, min(max_tokens, room), stops, sampling))

    def warm_up(self) -> None:
        """Compile what usual requests need. Blocks for seconds."""
        for job in self.backend.warm_ups(long=False):
            job()

    def warm_up_when_idle(self) -> None:
        """Compile what long prompts need between requests: they are rare."""
        self._engine.run_when_idle(self.backend.warm_ups(long=True))

    def detokenizer(self) -> Detokenizer:
        """Return what turns one generation's tokens into text."""
        return Detokenizer(self._tokenizer)

    def close(self) -> None:
        """End all generations. Safe to call twice."""
        self._engine.close()


def _name(tokenizer: TextTokenizer, token: int) -> str:
    return next((name for name, index in tokenizer.control.items() if index == token), "")
