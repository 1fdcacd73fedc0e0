"""Hands the trace of the caller on to the service, where OpenTelemetry is installed."""

from __future__ import annotations

from collections.abc import Callable

Pairs = tuple[tuple[str, str], ...]


def _nothing() -> Pairs:
    return ()


def _propagator() -> Callable[[], Pairs]:
    try:
        from opentelemetry import context, propagate, trace
    except ImportError:
        return _nothing

    def pairs() -> Pairs:
        # Most callers trace nothing, and this is asked on each call.
        if not context.get_current():
            return ()
        # Without a span there is no trace to go on with, and baggage alone is nobody's business but the caller's.
        if not trace.get_current_span().get_span_context().is_valid:
            return ()
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        # gRPC wants lower case. Baggage is the application's own and may hold anything.
        return tuple((key.lower(), value) for key, value in carrier.items() if key.lower() != "baggage")

    return pairs


#: The metadata that carries the current trace, such as `traceparent`. Empty outside of a span.
trace_metadata = _propagator()
