"""The table of statuses."""

import grpc
import pytest

from belem.runtime.inference import errors
from belem.runtime.inference.errors import GRPC_STATUSES, BadRequest, QueueFull, grpc_status
from belem.runtime.inference.store import CatalogueError, UnknownModel
from belem.sdk.errors import BelemError

DEFINED = [
    value
    for value in vars(errors).values()
    if isinstance(value, type)
    and issubclass(value, BelemError)
    and value.__module__ == errors.__name__
]


@pytest.mark.parametrize("kind", [*DEFINED, UnknownModel, CatalogueError])
def test_every_error_has_a_status_and_a_code(kind: type[BelemError]) -> None:
    status, belem_code = GRPC_STATUSES[kind]

    assert status is not grpc.StatusCode.OK
    assert belem_code in (3040, 3043, 5006, 5007, 5012, 5021)


def test_every_error_has_a_stable_code_of_its_own() -> None:
    codes = [kind.code for kind in DEFINED]

    assert len(set(codes)) == len(codes) >= 10
    assert all(code.startswith("inference/") for code in codes)


def test_the_codes_that_workers_know_are_kept() -> None:
    assert grpc_status(UnknownModel("@cf/no")) == (grpc.StatusCode.NOT_FOUND, 5007)
    assert grpc_status(QueueFull()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 3040)


def test_a_subclass_has_its_parents_status_and_a_stranger_an_internal_one() -> None:
    class Finer(BadRequest):
        pass

    assert grpc_status(Finer("x")) == GRPC_STATUSES[BadRequest]
    assert grpc_status(BelemError("x")) == (grpc.StatusCode.INTERNAL, 3043)
