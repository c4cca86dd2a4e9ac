import grpc
import grpc.aio
import pytest

from belem.bindings.ai import errors
from belem.bindings.ai.errors import GRPC_STATUSES, HTTP_STATUSES, AIError, from_rpc


def rpc_error(
    status: grpc.StatusCode, details: str = "", *metadata: tuple[str, str]
) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        status, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details=details
    )


def test_every_grpc_status_is_mapped() -> None:
    failures = set(grpc.StatusCode) - {grpc.StatusCode.OK}

    assert set(GRPC_STATUSES) == failures
    assert {code for code, _ in GRPC_STATUSES.values()} <= set(HTTP_STATUSES)


def test_every_internal_code_has_an_http_status() -> None:
    codes = {
        value
        for name, value in vars(errors).items()
        if name in errors.__all__ and isinstance(value, int)
    }

    assert codes == set(HTTP_STATUSES)
    assert all(400 <= status < 600 for status in HTTP_STATUSES.values())


@pytest.mark.parametrize("status", list(GRPC_STATUSES))
def test_from_rpc_hides_the_daemons_text_without_a_code(status: grpc.StatusCode) -> None:
    error = from_rpc(rpc_error(status, "/home/someone/secret.py line 7"))

    assert error.description == GRPC_STATUSES[status][1]


@pytest.mark.parametrize("code", sorted(HTTP_STATUSES))
def test_from_rpc_passes_on_the_daemons_code_and_text(code: int) -> None:
    error = from_rpc(
        rpc_error(grpc.StatusCode.UNKNOWN, "what the user may read", ("belem-code", str(code)))
    )

    assert (error.internal_code, error.description) == (code, "what the user may read")
    assert error.http_status == HTTP_STATUSES[code]


@pytest.mark.parametrize("code", ["", "abc", "9999", "-5007", "²"])
def test_from_rpc_distrusts_codes_it_does_not_know(code: str) -> None:
    error = from_rpc(rpc_error(grpc.StatusCode.INTERNAL, "secret", ("belem-code", code)))

    assert (error.internal_code, error.description) == (3043, "Internal server error")


def test_an_error_reads_as_on_workers() -> None:
    error = AIError(5006, "Error: oneOf at '/' not met")

    assert str(error) == "5006: Error: oneOf at '/' not met"
    assert error.body() == {
        "name": "AiError",
        "internalCode": 5006,
        "httpCode": 400,
        "message": "AiError: Bad input: Error: oneOf at '/' not met",
        "description": "Error: oneOf at '/' not met",
    }
