"""What one replica is told, the others know: interceptors, incidents, submissions, bundles and administrative events."""

import io
import itertools
import time
import uuid
import zipfile

import grpc
import pytest
from portcullis.v1 import (
    audit_service_pb2,
    audit_service_pb2_grpc,
    bundles_pb2,
    context_pb2,
    decision_pb2,
    entity_service_pb2,
    entity_service_pb2_grpc,
    incident_service_pb2,
    incident_service_pb2_grpc,
    interceptor_registry_service_pb2,
    interceptor_registry_service_pb2_grpc,
    interceptors_pb2,
    monitor_pb2,
    policy_decision_service_pb2,
    policy_decision_service_pb2_grpc,
    submission_service_pb2,
    submission_service_pb2_grpc,
)
from servers import until

# Within what a change must have reached every replica.
WITHIN_S = 2.0
registry = interceptor_registry_service_pb2
decisions = policy_decision_service_pb2
submissions = submission_service_pb2
entities = entity_service_pb2


def registries(cluster):
    return [interceptor_registry_service_pb2_grpc.InterceptorRegistryServiceStub(channel) for channel in cluster.channels]


def blocks(cluster, bearer, tool):
    """Which replicas block a call of this tool, by number."""
    found = []
    for channel in cluster.channels:
        stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)
        request = decisions.InterceptToolRequest(
            phase=interceptors_pb2.TOOL_PHASE_BEFORE, tool_name=tool, args_json='{"text":"a"}'
        )
        answer = stub.InterceptTool(request, metadata=bearer("agent"), timeout=10)
        found.append(answer.decision == decision_pb2.DECISION_BLOCK)
    return found


def interceptor(name, tool):
    rule = registry.InterceptorRule(when='args.text == "a"', actions=[registry.InterceptorAction(block="not that one")])
    return registry.Interceptor(id=name, hook=interceptors_pb2.HOOK_TOOL_BEFORE, tool_matcher=f"^{tool}$", rule=rule)


def change(cluster, bearer, number, act, tool, wanted):
    """Makes a change at one replica; until all decide alike. Answers how long that took."""
    act(registries(cluster)[number])
    began = time.monotonic()
    assert blocks(cluster, bearer, tool)[number] is wanted, "where it was changed it is in force with the answer"
    until(lambda: blocks(cluster, bearer, tool) == [wanted] * 3, f"all replicas: blocked is {wanted}", WITHIN_S)
    return time.monotonic() - began


@pytest.mark.parametrize("number", range(3))
def test_interceptors_reach_every_replica(cluster, bearer, number):
    tool, names = f"tool_{uuid.uuid4().hex[:8]}", [f"guard-{number}", f"guard-{number}-b"]
    admin = {"metadata": bearer("admin"), "timeout": 10}

    def add(stub):
        stub.AddInterceptor(
            registry.AddInterceptorRequest(interceptor=interceptor(names[0], tool), allow_unknown_tools=True), **admin
        )

    def remove(stub):
        stub.RemoveInterceptor(registry.RemoveInterceptorRequest(interceptor_id=names[0]), **admin)

    def clear(stub):
        stub.ClearInterceptors(registry.ClearInterceptorsRequest(), **admin)

    def listed():
        """Ids of added interceptors, as each replica lists and matches them."""
        found = []
        for stub in registries(cluster):
            request = registry.ListInterceptorsRequest()
            answers = stub.ListInterceptors(request, metadata=bearer("auditor"), timeout=10).interceptors
            found.append({one.id for one in answers if one.source == registry.INTERCEPTOR_SOURCE_API})
            request = registry.MatchInterceptorsRequest(hook=interceptors_pb2.HOOK_TOOL_BEFORE, tool_name=tool)
            answers = stub.MatchInterceptors(request, metadata=bearer("agent"), timeout=10).interceptors
            found.append({one.id for one in answers if one.source == registry.INTERCEPTOR_SOURCE_API})
        return found

    took = [change(cluster, bearer, number, add, tool, True)]
    assert listed() == [{names[0]}] * 6
    # Removed and cleared at another replica than it was added.
    took.append(change(cluster, bearer, (number + 1) % 3, remove, tool, False))
    assert listed() == [set()] * 6
    took.append(change(cluster, bearer, number, add, tool, True))
    took.append(change(cluster, bearer, (number + 2) % 3, clear, tool, False))
    assert listed() == [set()] * 6
    assert max(took) <= WITHIN_S, took


def test_an_id_is_given_once_whoever_is_asked(cluster, bearer):
    stubs = registries(cluster)
    request = registry.AddInterceptorRequest(interceptor=interceptor("only-one", "tool_once"), allow_unknown_tools=True)
    calls = [stub.AddInterceptor.future(request, metadata=bearer("admin"), timeout=10) for stub in stubs]
    codes = sorted(call.code().name for call in calls)
    assert codes == ["ALREADY_EXISTS", "ALREADY_EXISTS", "OK"]
    stubs[0].RemoveInterceptor(
        registry.RemoveInterceptorRequest(interceptor_id="only-one"), metadata=bearer("admin"), timeout=10
    )


def test_an_interceptor_outlives_the_replica_that_took_it(cluster, bearer):
    tool = "tool_kept"
    request = registry.AddInterceptorRequest(interceptor=interceptor("kept", tool), allow_unknown_tools=True)
    registries(cluster)[0].AddInterceptor(request, metadata=bearer("admin"), timeout=10)
    cluster.replicas[0].server.kill()
    cluster.replicas[0].start()
    grpc.channel_ready_future(cluster.channels[0]).result(30)
    assert blocks(cluster, bearer, tool)[0], "a new process has it before it serves"
    request = registry.RemoveInterceptorRequest(interceptor_id="kept")
    registries(cluster)[1].RemoveInterceptor(request, metadata=bearer("admin"), timeout=10)
    until(lambda: blocks(cluster, bearer, tool) == [False] * 3, "it is gone everywhere", WITHIN_S)


def skill(name):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(
            "SKILL.md",
            f"---\nname: {name}\ndescription: Sorts the notes of a meeting by speaker and topic, and sums them up.\n---\n\n"
            "# Notes\n\nRead the notes that the user gives. Sort them by speaker, then by topic, and sum each topic up.\n",
        )
    return archive.getvalue()


def files(archive):
    """Files of an archive; the service packs it anew."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_submissions_and_their_bytes_are_those_of_all(cluster, bearer):
    first, second, third = cluster.channels
    data = skill("shared-notes")

    def upload():
        header = decisions.BundleHeader(kind=bundles_pb2.BUNDLE_KIND_SKILL)
        yield decisions.ReviewBundleRequest(header=header)
        yield decisions.ReviewBundleRequest(chunk=data)

    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(first)
    uploaded = stub.ReviewBundle(upload(), metadata=bearer("submitter"), timeout=30)
    triage = [submission_service_pb2_grpc.SubmissionServiceStub(channel) for channel in cluster.channels]
    for each in triage:
        request = submissions.GetSubmissionRequest(submission_id=uploaded.submission_id)
        answer = each.GetSubmission(request, metadata=bearer("auditor"), timeout=10)
        assert answer.submission.id == uploaded.submission_id
    request = submissions.DownloadBundleRequest(submission_id=uploaded.submission_id)
    parts = list(triage[1].DownloadBundle(request, metadata=bearer("admin"), timeout=30))
    assert files(b"".join(part.chunk for part in parts)) == files(data), "bytes that another replica took"
    # Changed at the second, seen at the third.
    archive = entities.ArchiveEntityRequest(entity_id=uploaded.entity_id, reason="not needed")
    entity_service_pb2_grpc.EntityServiceStub(second).ArchiveEntity(archive, metadata=bearer("admin"), timeout=10)
    get = entities.GetEntityRequest(entity_id=uploaded.entity_id)
    shown = entity_service_pb2_grpc.EntityServiceStub(third).GetEntity(get, metadata=bearer("admin"), timeout=10)
    assert shown.entity.visibility == bundles_pb2.VISIBILITY_ARCHIVED
    triage[2].DeleteSubmission(
        submissions.DeleteSubmissionRequest(submission_id=uploaded.submission_id, reason="the test ends"),
        metadata=bearer("admin"),
        timeout=10,
    )
    with pytest.raises(grpc.RpcError) as gone:
        list(triage[0].DownloadBundle(request, metadata=bearer("admin"), timeout=30))
    assert gone.value.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND)


def test_incidents_are_those_of_all(cluster, bearer):
    session = f"session-{uuid.uuid4().hex}"

    def output():
        work = context_pb2.WorkContext(goal="Fix the login test")
        yield decisions.StreamMonitorRequest(attach=decisions.Attach(session_id=session, work=work))
        data = b"$ rm -rf / --no-preserve-root\n"
        yield decisions.StreamMonitorRequest(chunk=decisions.Chunk(stream=monitor_pb2.OUTPUT_STREAM_STDOUT, data=data, seq=1))
        yield decisions.StreamMonitorRequest(detach=decisions.Detach())

    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(cluster.channels[0])
    assert list(stub.StreamMonitor(output(), metadata=bearer("agent"), timeout=30))
    stubs = [incident_service_pb2_grpc.IncidentServiceStub(channel) for channel in cluster.channels]
    listing = incident_service_pb2.ListIncidentsRequest(session_id=session)
    found = [list(stub.ListIncidents(listing, metadata=bearer("auditor"), timeout=10).incidents) for stub in stubs]
    assert found[0] and found[0] == found[1] == found[2]
    mark = incident_service_pb2.MarkFalsePositiveRequest(incident_id=found[0][0].id, reason="a test")
    stubs[1].MarkFalsePositive(mark, metadata=bearer("admin"), timeout=10)
    get = incident_service_pb2.GetIncidentRequest(incident_id=found[0][0].id)
    assert stubs[2].GetIncident(get, metadata=bearer("auditor"), timeout=10).incident.false_positive


def test_events_of_all_replicas_are_one_chain(cluster, bearer):
    tools = itertools.count()
    for stub in registries(cluster):
        name = f"chained-{next(tools)}"
        request = registry.AddInterceptorRequest(interceptor=interceptor(name, "tool_chained"), allow_unknown_tools=True)
        stub.AddInterceptor(request, metadata=bearer("admin"), timeout=10)
        stub.RemoveInterceptor(
            registry.RemoveInterceptorRequest(interceptor_id=name), metadata=bearer("admin"), timeout=10
        )
    audits = [audit_service_pb2_grpc.AuditServiceStub(channel) for channel in cluster.channels]
    verify = audit_service_pb2.VerifyAuditChainRequest()
    said = [stub.VerifyAuditChain(verify, metadata=bearer("auditor"), timeout=10) for stub in audits]
    assert said[0] == said[1] == said[2]
    assert not said[0].broken_at and said[0].length >= 6 and said[0].last_hash, said[0]
    pages = [stub.ListAuditEvents(audit_service_pb2.ListAuditEventsRequest(), metadata=bearer("auditor"), timeout=10) for stub in audits]
    assert pages[0] == pages[1] == pages[2]
    resources = " ".join(event.resource for event in pages[0].events)
    assert all(f"chained-{number}" in resources for number in range(3)), resources
