"""Turn one file of a project into a JavaScript module, by its kind."""

import base64
import json
from pathlib import PurePosixPath

from belem.runtime.project.errors import SourceError, UnsupportedModule
from belem.runtime.project.positions import code_frame
from belem.runtime.project.syntax import syntax_error
from belem.runtime.project.transform import (
    JAVASCRIPT,
    JSX,
    TYPESCRIPT,
    Language,
    ParseFailure,
    Transformer,
)

__all__ = ["compile_module", "is_script"]

_LANGUAGES: dict[str, Language] = {
    ".js": JAVASCRIPT,
    ".jsx": JSX,
    ".mjs": JAVASCRIPT,
    ".mts": TYPESCRIPT,
    ".ts": TYPESCRIPT,
    ".tsx": JSX,
}
# The kinds that wrangler's default rules make of these names.
_TEXT = frozenset({".html", ".sql", ".txt"})
_UNSUPPORTED = {
    ".cjs": "CommonJS modules are not supported yet; write it as an ES module",
    ".css": "style sheets are not supported; import a .txt file, or serve the file",
    ".cts": "CommonJS modules are not supported yet; write it as an ES module",
    ".py": "Python workers are not supported yet",
    ".wasm": "WebAssembly modules are not supported yet",
}
_KINDS = "modules are .ts .tsx .mts .js .jsx .mjs .json, text .txt .html .sql, data .bin"


def is_script(name: str) -> bool:
    """Say whether a module of this name is code."""
    return PurePosixPath(name).suffix in _LANGUAGES


def compile_module(name: str, content: bytes, transformer: Transformer) -> str:
    """Return the JavaScript of a module; raise SourceError or UnsupportedModule if it has none."""
    suffix = PurePosixPath(name).suffix
    if suffix == ".bin":
        encoded = base64.b64encode(content).decode()
        return f'export default Uint8Array.fromBase64("{encoded}").buffer;\n'
    language = _LANGUAGES.get(suffix)
    if language is None and suffix != ".json" and suffix not in _TEXT:
        raise UnsupportedModule(f"{name}: {_UNSUPPORTED.get(suffix, _KINDS)}.")
    text = _decode(name, content)
    if language is not None:
        return _compile_script(name, text, language, transformer)
    if suffix == ".json":
        _check_json(name, text)
        return f"export default JSON.parse({json.dumps(text)});\n"
    return f"export default {json.dumps(text)};\n"


def _decode(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        reason = f"The file is not UTF-8: byte 0x{content[error.start]:02x} starts no character"
        raise SourceError(reason, file=name, line=line, column=column, frame="") from None


def _compile_script(name: str, text: str, language: Language, transformer: Transformer) -> str:
    try:
        return transformer(name, text, language)
    except ParseFailure as failure:
        reasons = failure.reasons

    def parse(source: str) -> tuple[str, ...]:
        try:
            transformer(name, source, language)
        except ParseFailure as failure:
            return failure.reasons
        return ()

    raise syntax_error(name, text, reasons, parse)


def _check_json(name: str, text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        frame = code_frame(text, error.lineno, error.colno)
        raise SourceError(
            error.msg, file=name, line=error.lineno, column=error.colno, frame=frame
        ) from None
    except RecursionError:
        raise SourceError(
            "The JSON is nested too deeply", file=name, line=0, column=0, frame=""
        ) from None
