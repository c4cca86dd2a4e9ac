import io
import json
import logging
from collections.abc import Iterator

import pytest

from belem.runtime.server.logs import EventFormatter, set_up_logging


def record(event: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("belem.test", logging.INFO, "f.py", 1, event, None, None)
    made.__dict__.update(fields)
    return made


def test_a_line_is_key_value() -> None:
    line = EventFormatter().format(
        record("request", worker="hello", duration_ms=1.23456, status=200)
    )

    assert line.endswith(
        "level=info event=request logger=belem.test worker=hello duration_ms=1.235 status=200"
    )


def test_text_of_a_worker_cannot_forge_a_line_or_a_field() -> None:
    line = EventFormatter().format(record("console", text='x" admin=true\nlevel=error \x1b[2J'))

    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith('text="x\\" admin=true\\nlevel=error \\u001b[2J"')


def test_json_is_one_object_a_line() -> None:
    line = EventFormatter("json").format(record("request", worker="hé", status=None))

    assert json.loads(line)["worker"] == "hé"
    assert json.loads(line)["event"] == "request"


def test_an_exception_is_a_field() -> None:
    made = record("request_failed")
    try:
        raise ValueError("boom")
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)

    assert 'error="ValueError: boom"' in EventFormatter().format(made)


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def test_every_logger_writes_to_the_one_stream(root_logger: logging.Logger) -> None:
    stream = io.StringIO()

    set_up_logging("json", stream=stream)
    logging.getLogger("belem.somewhere").warning("noticed", extra={"count": 3})

    assert root_logger.level == logging.INFO
    assert json.loads(stream.getvalue())["count"] == 3
