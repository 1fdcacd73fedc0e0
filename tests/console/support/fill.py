"""Fills the embedded database of a server with many submissions and incidents: copies of those that are there.

    fill.py DATABASE COUNT

Every row that is there is a model for `COUNT / models` copies, with ids, names, submitters and hashes of their own;
submissions are spread over 60 days, incidents over 29. A fifth of the entities is archived, and a tenth of all rows belongs
to another tenant. What refers to each other among the models does so among the copies. Copied rows hold whatever columns the
schema has. Some blocked ones are purged.
"""

import sqlite3
import sys

# Times of copies are spread over this.
SPAN_US = 60 * 24 * 3_600 * 1_000_000
# Those of incidents lie all within what rates count.
INCIDENTS_US = 29 * 24 * 3_600 * 1_000_000
# Those of another tenant are in nobody's way.
OTHER_TENANT = "CASE WHEN n % 10 = 9 THEN 'other' ELSE m.tenant END"


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


def other(column: str) -> str:
    """Another id, the same for the same id and number: its last 8 digits are the number's, the rest stays."""
    return f"CASE WHEN {column} IS NULL OR {column} = '' THEN {column} ELSE substr({column}, 1, 28) || printf('%08x', n) END"


def main() -> None:
    path, count = sys.argv[1], int(sys.argv[2])
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    (models,) = db.execute("SELECT count(*) FROM submission").fetchone()
    (incidents,) = db.execute("SELECT count(*) FROM incident").fetchone()
    each = count // models
    # The same for every copy `n`, so that what lies behind each other in time does so in the copies.
    earlier = f"- n * {SPAN_US // each}"
    # What a crash would cost is a test.
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -200000")
    db.execute("BEGIN IMMEDIATE")
    copy(
        db,
        "entity",
        each,
        {
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
        },
    )
    copy(
        db,
        "submission",
        each,
        {
            "id": other("m.id"),
            "tenant": OTHER_TENANT,
            "entity_id": other("m.entity_id"),
            "name": "m.name || '-' || n",
            "submitter": "m.submitter || (n % 97)",
            "bundle_sha256": "substr(m.bundle_sha256, 1, 56) || printf('%08x', n)",
            "create_time_us": f"m.create_time_us {earlier}",
            "update_time_us": f"m.update_time_us {earlier}",
            "purge_time_us": "CASE WHEN m.status LIKE 'blocked%' AND n % 3 = 0 THEN m.update_time_us END",
            "folded": "m.folded || ' ' || m.name || '-' || n",
        },
    )
    copy(db, "attempt", each, {"submission_id": other("m.submission_id")})
    copy(
        db,
        "incident",
        count // incidents,
        {
            "id": other("m.id"),
            "tenant": OTHER_TENANT,
            "session_id": "m.session_id || (n % 997)",
            "time_us": f"m.time_us - n * {INCIDENTS_US * incidents // count}",
            "false_positive": "n % 9 = 0",
        },
    )
    db.execute("COMMIT")
    print(*(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("submission", "incident")))


if __name__ == "__main__":
    main()
