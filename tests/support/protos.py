"""Check that the committed gRPC modules are what the .proto file gives; `--write` renews them."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROTO = Path("src/belem/bindings/ai/v1/inference.proto")
GENERATED = ("inference_pb2.py", "inference_pb2.pyi", "inference_pb2_grpc.py")


def generate(directory: Path) -> None:
    """Write the modules into `directory`, under the same path as in `src`."""
    options = [f"--{kind}={directory}" for kind in ("python_out", "pyi_out", "grpc_python_out")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Isrc", *options, str(PROTO)]
    subprocess.run(command, cwd=ROOT, check=True)


def stale() -> list[str]:
    """Return the names of the committed modules that differ from fresh ones."""
    with tempfile.TemporaryDirectory() as directory:
        generate(Path(directory))
        fresh = Path(directory) / PROTO.relative_to("src").parent
        committed = ROOT / PROTO.parent
        return [
            name
            for name in GENERATED
            if (fresh / name).read_bytes() != (committed / name).read_bytes()
        ]


def main() -> None:
    if "--write" in sys.argv[1:]:
        generate(ROOT / "src")
    if names := stale():
        sys.exit(f"stale: {', '.join(names)}; run python -m tests.support.protos --write")


if __name__ == "__main__":
    main()
