"""Everything that the servers of all tests left is searched. Runs after what plants, as tests run in the order of their files."""

import canaries
from test_canary import places_of

SINKS = ("file", "stdout", "otlp")


def test_nothing_that_was_planted_is_found(logs):
    search = canaries.Search([place for sink in SINKS for place in places_of(sink)])
    files = sorted(file for file in logs.rglob("*") if file.is_file())
    kinds = {file.name.split(".")[0] for file in files}
    assert {"stderr", "stdout", "metrics", "audit", "otlp"} <= kinds, "all kinds of what servers leave are there"
    assert sum(file.stat().st_size for file in files) > 100_000
    leaks = [f"{name} in {file}: {text}" for (name, file), text in search.found_below(logs).items()]
    assert not leaks, f"{len(leaks)} leaks:\n" + "\n".join(sorted(leaks)[:40])
    # Records and lines of the very calls were searched, not an empty folder.
    text = b"".join(file.read_bytes() for file in files if file.name in ("stderr.log", "otlp.txt", "audit.jsonl", "stdout.log"))
    for trace in (b'"request decided"', b'"rpc":"InterceptTool"', b"CheckMessages", b"decision_id", b"service.name"):
        assert trace in text, trace
