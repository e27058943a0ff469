"""Requests to a server compared with the ideal: a stub that sleeps 200 ms, 32 requests in flight.

Run as `python -m scripts.bench.server_requests`; the last line is one JSON object. The ideal is
`requests / in flight` times the sleep. The stub runs in a separate process; replies are cached as
always; the first requests, which open the connections, are not counted. The figure is the median
over rounds.
"""

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IN_FLIGHT = 32
SLEEP = 0.2
EACH = 20
"""Requests of a round, for each one in flight."""
_REPLY = json.dumps(
    {
        "model": "stub",
        "choices": [{"text": " a reply of some words"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 6},
    }
).encode()


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help="run the stub, and print its port")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    print(json.dumps(measure(options.rounds)))


def measure(rounds: int) -> dict[str, object]:
    """Return throughput over the ideal, and seconds of this process's CPU a request."""
    command = [sys.executable, "-m", "scripts.bench.server_requests", "--serve"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stub,
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            assert stub.stdout is not None
            url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"
            ratios, processor = _rounds(url, Path(folder) / "replies.sqlite", rounds)
        finally:
            stub.terminate()
    return {
        "api_over_ideal": round(statistics.median(ratios), 3),
        "each_round": [round(ratio, 3) for ratio in ratios],
        "cpu_ms_per_request": round(1000 * statistics.median(processor), 2),
        "in_flight": IN_FLIGHT,
        "server_sleeps_s": SLEEP,
        "requests_per_round": IN_FLIGHT * EACH,
    }


def _rounds(url: str, cache: Path, rounds: int) -> tuple[list[float], list[float]]:
    from inject.server.client import ServerClient
    from inject.server.request import Server, TextRequest

    server = Server(base_url=url, model="stub", concurrency=IN_FLIGHT)
    client = ServerClient(server, cache=cache)
    client.ask([TextRequest(prompt=f"warm {n}", max_tokens=8) for n in range(IN_FLIGHT)])
    ratios, processor = [], []
    for number in range(rounds):
        requests = [
            TextRequest(prompt=f"{number} {n} " + "word " * 100, max_tokens=8)
            for n in range(IN_FLIGHT * EACH)
        ]
        began, used = time.perf_counter(), time.process_time()
        client.ask(requests)
        ratios.append(EACH * SLEEP / (time.perf_counter() - began))
        processor.append((time.process_time() - used) / len(requests))
    client.close()
    return ratios, processor


async def serve() -> None:
    """Answer requests after `SLEEP` seconds; print the port first."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                lengths = re.findall(rb"content-length: (\d+)", head)
                await reader.readexactly(sum(map(int, lengths)))
                await asyncio.sleep(SLEEP)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (len(_REPLY), _REPLY)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=4 * IN_FLIGHT)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
