"""A skill uploaded for review, with progress, until its verdict. `review_bundle.py [ADDRESS [FOLDER-OR-ZIP]]`"""

import sys
import tempfile
from pathlib import Path

from portcullis import Client
from portcullis.v1.bundles_pb2 import SubmissionStatus

SKILL = """---
name: notes
description: Sorts the notes of a meeting by speaker and topic, and writes a short summary of each part.
---

# Notes

Read the notes that the user gives. Sort them by speaker, then by topic. Write one paragraph for each topic, in plain
words, and list open questions at the end. Keep every name as it is written.
"""


def review(client: Client, path: Path) -> None:
    answer = client.review_bundle(path, progress=lambda sent, total: print(f"{sent} of {total} bytes"))
    print(SubmissionStatus.Name(answer.status))
    for finding in answer.checks.static_security.findings:
        print(f"{finding.file}:{finding.line}: {finding.reason}")
    for told in client.watch_submission(answer.submission_id):
        print(SubmissionStatus.Name(told.submission.status), "final" if told.final else "pending")


def main(address: str, path: str | None) -> None:
    with Client(address, submitter="ada") as client, tempfile.TemporaryDirectory() as folder:
        if path is None:
            skill = Path(folder, "notes")
            skill.mkdir()
            (skill / "SKILL.md").write_text(SKILL, encoding="utf-8")
            path = str(skill)
        review(client, Path(path))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051", sys.argv[2] if len(sys.argv) > 2 else None)
