"""What one isolate, and one request in it, may use."""

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The defaults are those of Workers' paid plan where Workers has the limit."""

    cpu_ms: int = 30_000  # for one invocation, and for any one step
    startup_cpu_ms: int = 1_000  # for the top level of all modules
    memory_bytes: int = 128 << 20
    wait_until_seconds: float = 30.0  # after the reply, or after the client left
    log_bytes: int = 256 << 10  # for one request; the rest is dropped with a note
    outbox_bytes: int = 64 << 20  # what one step may send
    op_json_bytes: int = (
        8 << 20
    )  # the JSON half of one op: parsing it costs the host up to 40 times as much
    subrequests: int = 10_000  # ops of one request, but for timers and crypto
    connections: int = 6  # fetches of one request that wait for their response's head; more queue
    op_seconds: float = 900.0  # for an op that is no timer; capabilities allow themselves less
    max_pending_ops: int = 1_000
    pending_op_bytes: int = 128 << 20  # what those may hold of arguments and bodies
    max_requests: int = 1_000  # not yet settled, in one isolate
    max_streams: int = 1_000  # each way
