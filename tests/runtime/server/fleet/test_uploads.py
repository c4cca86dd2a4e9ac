from belem.runtime.control import Binding, Upload, Version
from belem.runtime.server.fleet.uploads import (
    decode_upload,
    decode_version,
    encode_upload,
    encode_version,
)

UPLOAD = Upload(
    worker="hello",
    main_module="a.js",
    modules={"a.js": "export default {}", "b.js": "// é \ud800"},
    bindings=(Binding("NOTES", "kv_namespace", "shared"), Binding("AI", "ai")),
    vars={"A": "text", "B": {"deep": [1, None]}},
    compatibility_date="2026-11-01",
    compatibility_flags=("nodejs_compat",),
    cpu_ms=50,
    subrequests=7,
    isolation="request",
)


def test_an_upload_comes_back_as_it_was() -> None:
    assert decode_upload(encode_upload(UPLOAD)) == UPLOAD


def test_a_version_comes_back_as_it_was() -> None:
    version = Version("id", 3, 1_700_000_000_000, UPLOAD)

    assert decode_version(encode_version(version)) == version
