"""A bundle uploaded in chunks, its verdict watched, its files downloaded and compared byte by byte."""

import hashlib
import http.server
import io
import json
import threading
import time
import zipfile

import grpc
import pytest
from conftest import running_server
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from portcullis.v1 import (
    bundles_pb2,
    decision_pb2,
    entity_service_pb2,
    entity_service_pb2_grpc,
    policy_decision_service_pb2,
    policy_decision_service_pb2_grpc,
    submission_service_pb2,
    submission_service_pb2_grpc,
)

TIMEOUT_S = 30
CHUNK = 64 * 1024

SKILL_MD = """---
name: notes
description: Sorts the notes of a meeting by speaker and topic, and writes a short summary of each part.
---

# Notes

Read the notes that the user gives for {{project}}. Sort them by speaker, then by topic. Write one paragraph for each
topic, in plain words, and list open questions at the end. Keep every name as it is written.
"""

# What the model answers; slow enough that a watcher sees the submission wait.
VERDICT = {"risk_level": "safe", "summary": "It sorts notes.", "findings": [], "placeholders": 1}


class Model(http.server.BaseHTTPRequestHandler):
    """One answer, in the words of an Ollama server."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.3)
        message = {"role": "assistant", "content": json.dumps(VERDICT)}
        answer = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
        body = json.dumps(answer | {"message": message, "prompt_eval_count": 10, "eval_count": 5}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def reviewing(tmp_path_factory):
    """A server whose uploads a model reviews."""
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=model.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{model.server_port}"
    settings = {"llm": {"backend": "ollama", "model": "m", "base_url": url, "attempts_max": 1}}
    try:
        # JSON is YAML.
        with running_server(tmp_path_factory.mktemp("reviewing"), json.dumps(settings)) as server:
            yield server
    finally:
        model.shutdown()
        thread.join()
        model.server_close()


@pytest.fixture(scope="module")
def reviewing_channel(reviewing):
    with grpc.insecure_channel(reviewing.grpc) as channel:
        yield channel


def packed(files):
    """A ZIP archive as Python packs it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return out.getvalue()


def unpacked(archive):
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def requests(archive, chunk=CHUNK, **header):
    header.setdefault("kind", bundles_pb2.BUNDLE_KIND_SKILL)
    yield policy_decision_service_pb2.ReviewBundleRequest(
        header=policy_decision_service_pb2.BundleHeader(**header)
    )
    for start in range(0, len(archive), chunk):
        yield policy_decision_service_pb2.ReviewBundleRequest(chunk=archive[start : start + chunk])


def review(channel, archive, **header):
    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)
    return stub.ReviewBundle(requests(archive, **header), timeout=TIMEOUT_S)


def received(messages):
    """The header of a download and its bytes."""
    first = next(messages)
    assert first.WhichOneof("kind") == "header"
    return first.header, b"".join(message.chunk for message in messages)


def test_upload_watch_download(reviewing, reviewing_channel):
    # Text that does not pack well, so that there are many chunks.
    lines = "".join(f"{hashlib.sha256(str(n).encode()).hexdigest()}\n" for n in range(6_000))
    files = {"SKILL.md": SKILL_MD.encode(), "examples/long.txt": lines.encode(), "examples/empty.txt": b""}
    archive = packed(files)
    assert len(archive) > 2 * CHUNK
    answer = review(
        reviewing_channel,
        archive,
        sha256=hashlib.sha256(archive).hexdigest(),
        size=len(archive),
    )
    assert answer.status == bundles_pb2.SUBMISSION_STATUS_PENDING_LLM, answer
    assert answer.decision == decision_pb2.DECISION_ASK
    of_files = hashlib.sha256()
    for path in sorted(files):
        of_files.update(path.encode() + b"\0" + files[path] + b"\0")
    assert answer.bundle_sha256 == of_files.hexdigest()
    assert (answer.file_size, answer.file_count) == (len(archive), 3)

    submissions = submission_service_pb2_grpc.SubmissionServiceStub(reviewing_channel)
    watched = submissions.WatchSubmission(
        submission_service_pb2.WatchSubmissionRequest(submission_id=answer.submission_id), timeout=TIMEOUT_S
    )
    told = [(message.submission.status, message.final) for message in watched]
    assert told[0] == (bundles_pb2.SUBMISSION_STATUS_PENDING_LLM, False)
    assert told[-1] == (bundles_pb2.SUBMISSION_STATUS_APPROVED, True)

    entities = entity_service_pb2_grpc.EntityServiceStub(reviewing_channel)
    header, live = received(
        entities.DownloadEntity(
            entity_service_pb2.DownloadEntityRequest(entity_id=answer.entity_id), timeout=TIMEOUT_S
        )
    )
    assert hashlib.sha256(live).hexdigest() == header.sha256
    assert len(live) == header.size
    assert unpacked(live) == files

    admin = [("authorization", f"Bearer {reviewing.admin_token}")]
    header, submitted = received(
        submissions.DownloadBundle(
            submission_service_pb2.DownloadBundleRequest(submission_id=answer.submission_id),
            timeout=TIMEOUT_S,
            metadata=admin,
        )
    )
    assert header.bundle_sha256 == answer.bundle_sha256
    assert unpacked(submitted) == files


def test_a_dry_run_gives_no_id(reviewing_channel):
    answer = review(reviewing_channel, packed({"SKILL.md": SKILL_MD}), dry_run=True)
    assert (answer.submission_id, answer.entity_id) == ("", "")
    assert answer.status == bundles_pb2.SUBMISSION_STATUS_PENDING_LLM


def test_a_blocked_bundle_is_an_answer(reviewing_channel):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("SKILL.md", SKILL_MD)
        archive.writestr("../outside.txt", "hello")
    answer = review(reviewing_channel, out.getvalue())
    assert answer.status == bundles_pb2.SUBMISSION_STATUS_BLOCKED_INLINE
    assert answer.decision == decision_pb2.DECISION_BLOCK
    assert answer.checks.archive.findings[0].rule_id == "archive.path-traversal"
    entities = entity_service_pb2_grpc.EntityServiceStub(reviewing_channel)
    with pytest.raises(grpc.RpcError) as refused:
        next(entities.DownloadEntity(entity_service_pb2.DownloadEntityRequest(entity_id=answer.entity_id)))
    # The anonymous submitter owns it, and there is nothing approved to hand out.
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("header", "field"),
    [({"kind": 0}, "header.kind"), ({"sha256": "0" * 64}, "header.sha256"), ({"size": 3}, "header.size")],
)
def test_wrong_fields_are_named(reviewing_channel, header, field):
    with pytest.raises(grpc.RpcError) as refused:
        review(reviewing_channel, packed({"SKILL.md": SKILL_MD}), **header)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    details = rpc_status.from_call(refused.value).details
    bad = error_details_pb2.BadRequest()
    assert any(one.Unpack(bad) for one in details)
    assert [violation.field for violation in bad.field_violations] == [field]


def test_chunks_before_the_header_are_refused(reviewing_channel):
    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(reviewing_channel)
    chunk = policy_decision_service_pb2.ReviewBundleRequest(chunk=b"PK")
    with pytest.raises(grpc.RpcError) as refused:
        stub.ReviewBundle(iter([chunk]), timeout=TIMEOUT_S)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
