"""What the client costs over the raw stubs: `overhead.py ADDRESS [ROUNDS [LIMIT]]`.

Both sides ask the same question of the same server over one warm connection each, made with the same channel
settings, one after the other in turns, so that whatever else the machine does hits both alike. Prints the medians and
their ratio, each for the calls that agents make most. A ratio above LIMIT, such as 1.10, ends it with exit code 1.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import grpc

from portcullis import AsyncClient, Client
from portcullis.v1 import decision_pb2, interceptors_pb2, messages_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp
from portcullis.v1 import policy_decision_service_pb2_grpc as pdp_grpc

WARM = 300
TIMEOUT_S = 5.0
# About 1 KB of plain text.
TEXT = "The train to the coast leaves at nine, and the museum opens at ten on most days of the week. " * 11
ARGS = '{"command": "ls -la src/portcullis && git status --short"}'


def check() -> pdp.CheckMessagesRequest:
    return pdp.CheckMessagesRequest(
        messages=[messages_pb2.Message(role="user", text=TEXT)],
        offset_encoding=decision_pb2.OFFSET_ENCODING_UTF32,
    )


def intercept() -> pdp.InterceptToolRequest:
    return pdp.InterceptToolRequest(
        phase=interceptors_pb2.TOOL_PHASE_BEFORE,
        tool_name="bash",
        args_json=ARGS,
        offset_encoding=decision_pb2.OFFSET_ENCODING_UTF32,
    )


def timed(raw: Callable[[], object], ours: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Medians in seconds, taken in turns, each side first as often as the other."""
    samples: tuple[list[float], list[float]] = ([], [])
    for index in range(WARM + rounds):
        for side in (0, 1) if index % 2 else (1, 0):
            run = (raw, ours)[side]
            started = time.perf_counter()
            run()
            taken = time.perf_counter() - started
            if index >= WARM:
                samples[side].append(taken)
    return statistics.median(samples[0]), statistics.median(samples[1])


async def timed_async(
    raw: Callable[[], Awaitable[object]], ours: Callable[[], Awaitable[object]], rounds: int
) -> tuple[float, float]:
    samples: tuple[list[float], list[float]] = ([], [])
    for index in range(WARM + rounds):
        for side in (0, 1) if index % 2 else (1, 0):
            run = (raw, ours)[side]
            started = time.perf_counter()
            await run()
            taken = time.perf_counter() - started
            if index >= WARM:
                samples[side].append(taken)
    return statistics.median(samples[0]), statistics.median(samples[1])


RATIOS: dict[str, float] = {}


def told(name: str, medians: tuple[float, float]) -> None:
    raw, ours = medians
    RATIOS[name] = ours / raw
    print(f"{name}: raw {raw * 1e6:.0f} us, client {ours * 1e6:.0f} us, ratio {ours / raw:.3f}", flush=True)


def threads(address: str, rounds: int) -> None:
    with Client(address) as client:
        # A channel of its own: `local` keeps gRPC from sharing the connection.
        arguments = (*client._endpoint.arguments, ("grpc.use_local_subchannel_pool", 1))
        with grpc.insecure_channel(client._endpoint.target, arguments) as channel:
            stub = pdp_grpc.PolicyDecisionServiceStub(channel)
            assert not client.check_messages(TEXT).findings
            told(
                "CheckMessages, threads",
                timed(
                    lambda: stub.CheckMessages(check(), timeout=TIMEOUT_S),
                    lambda: client.check_messages(TEXT),
                    rounds,
                ),
            )
            told(
                "InterceptTool, threads",
                timed(
                    lambda: stub.InterceptTool(intercept(), timeout=TIMEOUT_S),
                    lambda: client.intercept_tool("bash", ARGS),
                    rounds,
                ),
            )


async def loop(address: str, rounds: int) -> None:
    async with AsyncClient(address) as client:
        arguments = (*client._endpoint.arguments, ("grpc.use_local_subchannel_pool", 1))
        async with grpc.aio.insecure_channel(client._endpoint.target, arguments) as channel:
            stub = pdp_grpc.PolicyDecisionServiceStub(channel)
            told(
                "CheckMessages, asyncio",
                await timed_async(
                    lambda: stub.CheckMessages(check(), timeout=TIMEOUT_S),
                    lambda: client.check_messages(TEXT),
                    rounds,
                ),
            )
            told(
                "InterceptTool, asyncio",
                await timed_async(
                    lambda: stub.InterceptTool(intercept(), timeout=TIMEOUT_S),
                    lambda: client.intercept_tool("bash", ARGS),
                    rounds,
                ),
            )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: overhead.py ADDRESS [ROUNDS [LIMIT]]")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    threads(sys.argv[1], count)
    asyncio.run(loop(sys.argv[1], count))
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    above = [f"{name}: the ratio {ratio:.3f} is above {limit}" for name, ratio in RATIOS.items() if ratio > limit]
    if above:
        sys.exit("\n".join(above))
