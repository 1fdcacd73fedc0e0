#!/usr/bin/env python3
"""Writes the Grafana dashboards beside this file from the descriptions in `source`.

    ./make.py            writes every dashboard
    ./make.py --check    writes nothing; exit code 1 and the names of those that differ

Needs Python 3.10 and nothing else. The JSON files are committed, so that nobody needs this to run them; a change is made
in `source` and written with this, never in the JSON.
"""

import argparse
import json
import pathlib
import sys

from source import decisions, llm, overview, plugins, reviews, saturation, streams

HERE = pathlib.Path(__file__).resolve().parent

#: File name and content of every dashboard, in the order in which they are linked.
DASHBOARDS = {
    "overview.json": overview.DASHBOARD,
    "decisions.json": decisions.DASHBOARD,
    "plugins.json": plugins.DASHBOARD,
    "streams.json": streams.DASHBOARD,
    "reviews.json": reviews.DASHBOARD,
    "llm.json": llm.DASHBOARD,
    "saturation.json": saturation.DASHBOARD,
}


def text_of(dashboard: dict) -> str:
    """A dashboard as it lies in its file."""
    return json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"


def stale() -> list[str]:
    """Names of the files that are not what `source` says, those that it does not know included."""
    known = {
        name
        for name, dashboard in DASHBOARDS.items()
        if (HERE / name).is_file() and (HERE / name).read_text(encoding="utf-8") == text_of(dashboard)
    }
    there = {file.name for file in HERE.glob("*.json")}
    return sorted((there | DASHBOARDS.keys()) - known)


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the Grafana dashboards.")
    parser.add_argument("--check", action="store_true", help="write nothing, tell what differs")
    if parser.parse_args().check:
        for name in stale():
            print(f"{name} is not what make.py writes; run it", file=sys.stderr)
        return 1 if stale() else 0
    for name, dashboard in DASHBOARDS.items():
        (HERE / name).write_text(text_of(dashboard), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
