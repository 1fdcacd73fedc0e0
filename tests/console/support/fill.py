"""Fills the store of a server with many submissions and incidents: copies of those that are there.

    fill.py DATABASE COUNT            fills the embedded database
    fill.py --plan SUBMISSIONS INCIDENTS COUNT
                                      tells as JSON what `postgres.js` fills PostgreSQL with, where so many rows are there

Every row that is there is a model for `COUNT / models` copies, with ids, names, submitters and hashes of their own;
submissions are spread over 60 days, incidents over 29. A fifth of the entities is archived, and a tenth of all rows belongs
to another tenant. Of those that passed, some are held, for what no server goes on with by itself while pages are timed, some
could not be reviewed, and some were blocked by a review. What refers to each other among the models does so among the
copies. Copied rows hold whatever columns the schema has. Some blocked ones are purged, and all old ones.
"""

import json
import sqlite3
import sys

# Times of copies are spread over this.
SPAN_US = 60 * 24 * 3_600 * 1_000_000
# What was blocked before this is purged, as the daily purge would have done: else it would begin to, and slow down what is
# timed. A day less than the bytes of blocked bundles are kept.
KEPT_US = 29 * 24 * 3_600 * 1_000_000
# Those of incidents lie all within what rates count.
INCIDENTS_US = 29 * 24 * 3_600 * 1_000_000
# Those of another tenant are in nobody's way.
OTHER_TENANT = "CASE WHEN n % 10 = 9 THEN 'other' ELSE m.tenant END"
# A share of those that passed stands otherwise.
STATUS = (
    "CASE WHEN m.status <> 'approved' THEN m.status WHEN n % 20 = 1 THEN 'blocked_llm' WHEN n % 50 = 2 THEN 'pending_llm' "
    "WHEN n % 500 = 3 THEN 'review_error' ELSE m.status END"
)
# What is written otherwise by the two engines: a number as eight hexadecimal digits.
HEX = {"sqlite": "printf('%08x', n)", "postgres": "lpad(to_hex(n), 8, '0')"}


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def copy(db: sqlite3.Connection, table: str, count: int, changes: dict[str, str]) -> None:
    """Copies each row of a table `count` times; `changes` are expressions over the row and the number `n` of the copy."""
    names = columns(db, table)
    missing = changes.keys() - set(names)
    assert not missing, f"{table} has no {missing}"
    values = ", ".join(changes.get(name, f"m.{name}") for name in names)
    db.execute(
        f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM (SELECT * FROM {table}) m, numbers"
    )


def plan(engine: str, models: int, incidents: int, count: int) -> list[tuple[str, int, dict[str, str]]]:
    """Tables in their order, how often each row is copied, and the expressions of columns that differ."""
    number = HEX[engine]

    def other(column: str) -> str:
        """Another id, the same for the same id and number: its last 8 digits are the number's, the rest stays."""
        is_none = f"{column} IS NULL OR {column} = ''"
        return f"CASE WHEN {is_none} THEN {column} ELSE substr({column}, 1, 28) || {number} END"

    each = count // models
    # The same for every copy `n`, so that what lies behind each other in time does so in the copies.
    earlier = f"- n * {SPAN_US // each}"
    entity = {
        "id": other("m.id"),
        "name": "m.name || '-' || n",
        "owner": "m.owner || (n % 97)",
        "tenant": OTHER_TENANT,
        "visibility": "CASE WHEN n % 5 = 0 THEN 'archived' ELSE m.visibility END",
        "live_submission_id": other("m.live_submission_id"),
        "latest_submission_id": other("m.latest_submission_id"),
        "create_time_us": f"m.create_time_us {earlier}",
        "update_time_us": f"m.update_time_us {earlier}",
        "folded": "m.folded || ' ' || m.name || '-' || n",
    }
    is_purged = f"(n % 3 = 0 OR n * {SPAN_US // each} >= {KEPT_US})"
    submission = {
        "id": other("m.id"),
        "tenant": OTHER_TENANT,
        "entity_id": other("m.entity_id"),
        "name": "m.name || '-' || n",
        "submitter": "m.submitter || (n % 97)",
        "status": STATUS,
        "hold_reason": "CASE WHEN m.status = 'approved' AND n % 50 = 2 THEN 'coverage' ELSE m.hold_reason END",
        "bundle_sha256": f"substr(m.bundle_sha256, 1, 56) || {number}",
        "create_time_us": f"m.create_time_us {earlier}",
        "update_time_us": f"m.update_time_us {earlier}",
        "purge_time_us": f"CASE WHEN m.status LIKE 'blocked%' AND {is_purged} THEN m.update_time_us END",
        "folded": "m.folded || ' ' || m.name || '-' || n",
    }
    incident = {
        "id": other("m.id"),
        "tenant": OTHER_TENANT,
        "session_id": "m.session_id || (n % 997)",
        "time_us": f"m.time_us - n * {INCIDENTS_US * incidents // count}",
        "false_positive": "CASE WHEN n % 9 = 0 THEN 1 ELSE 0 END",
    }
    return [
        ("entity", each, entity),
        ("submission", each, submission),
        ("attempt", each, {"submission_id": other("m.submission_id")}),
        ("incident", count // incidents, incident),
    ]


def main() -> None:
    if sys.argv[1] == "--plan":
        print(json.dumps(plan("postgres", *map(int, sys.argv[2:5]))))
        return
    path, count = sys.argv[1], int(sys.argv[2])
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    (models,) = db.execute("SELECT count(*) FROM submission").fetchone()
    (incidents,) = db.execute("SELECT count(*) FROM incident").fetchone()
    # What a crash would cost is a test.
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -200000")
    db.execute("BEGIN IMMEDIATE")
    for table, each, changes in plan("sqlite", models, incidents, count):
        copy(db, table, each, changes)
    db.execute("COMMIT")
    print(*(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("submission", "incident")))


if __name__ == "__main__":
    main()
