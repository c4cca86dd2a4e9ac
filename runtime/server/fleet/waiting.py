"""Wait for the first of several events."""

import asyncio

__all__ = ["any_set"]


async def any_set(*events: asyncio.Event, timeout_seconds: float | None = None) -> bool:
    """Return whether one of the events is set, as soon as one is or the time is over."""
    if any(event.is_set() for event in events):
        return True
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return any(event.is_set() for event in events)
