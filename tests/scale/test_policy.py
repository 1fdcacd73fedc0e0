"""A policy file takes effect within two seconds on the replica that sees it change, and the metrics show who has which."""

import time

from portcullis.v1 import messages_pb2, policy_decision_service_pb2, policy_decision_service_pb2_grpc
from servers import until

WITHIN_S = 2.0


def revision(cluster, bearer, number):
    """The revision that an answer of this replica tells."""
    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(cluster.channels[number])
    part = messages_pb2.Part(text="hello")
    request = policy_decision_service_pb2.CheckMessagesRequest(messages=[messages_pb2.Message(role="user", parts=messages_pb2.Parts(parts=[part]))])
    return stub.CheckMessages(request, metadata=bearer("agent"), timeout=10).policy_revision


def test_a_file_takes_effect_and_metrics_show_the_divergence(cluster, bearer):
    replicas = cluster.replicas
    infos = [replica.policy_info() for replica in replicas]
    assert infos[0] == infos[1] == infos[2] and len(infos[0]) == 1, "the same files are the same revision everywhere"
    (old,) = infos[0]
    assert [revision(cluster, bearer, number) for number in range(3)] == [old] * 3

    for changed, replica in enumerate(replicas):
        began = time.monotonic()
        replica.write_policy(0.6)
        new = until(lambda: (revision(cluster, bearer, changed) != old) and revision(cluster, bearer, changed), "in force", WITHIN_S)
        assert time.monotonic() - began <= WITHIN_S
        # Each tells one revision: those that saw the file the new one, the others the old one until they do.
        expected = [{new}] * (changed + 1) + [{old}] * (2 - changed)
        until(lambda: [each.policy_info() for each in replicas] == expected, f"the metrics show {expected}", WITHIN_S)
        distinct = {one for each in replicas for one in each.policy_info()}
        assert len(distinct) == (2 if changed < 2 else 1), "what an alert on divergence counts"

    # A file that is broken diverges from nothing: the last good one stays, and the rejection is counted.
    rejected = 'portcullis_policy_reloads_total{outcome="rejected"}'
    before = replicas[1].server.metric(rejected)
    replicas[1].write_policy("many")
    until(lambda: replicas[1].server.metric(rejected) == before + 1, "the rejection is counted", WITHIN_S)
    assert [each.policy_info() for each in replicas] == [{new}] * 3
    for replica in replicas:
        replica.write_policy(0.7)
    until(lambda: [each.policy_info() for each in replicas] == [{old}] * 3, "the same text is the same revision", WITHIN_S)
