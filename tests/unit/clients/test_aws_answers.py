"""Meaning of an answer of EC2, for machines and for people."""

from __future__ import annotations

import pytest

from reactor.clients.aws import aws_error
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnauthorizedOperation", Forbidden),
        ("AuthFailure", Forbidden),
        ("RequestLimitExceeded", ApiUnavailable),
        ("InternalError", ApiUnavailable),
        ("503", ApiUnavailable),
        ("InvalidAssociationID.NotFound", Conflict),
        ("DependencyViolation", Conflict),
        ("InvalidNetworkAclID.NotFound", NotFound),
        ("InvalidParameterValue", Invalid),
        ("RuleNotFound", NotFound),
        ("NoSuchHostedZone", NotFound),
        ("PriorRequestNotComplete", ApiUnavailable),
        ("", Invalid),
    ],
)
def test_each_code_has_its_meaning(code: str, kind: type[Exception]) -> None:
    error = aws_error("ec2 eu-central-1: create_network_acl", {"Code": code, "Message": "so it is"})
    assert type(error) is kind
    assert "ec2 eu-central-1: create_network_acl was answered" in str(error)


def test_a_missing_permission_names_what_to_grant() -> None:
    error = aws_error("ec2 eu-central-1: replace_network_acl_association", {"Code": "UnauthorizedOperation"})
    assert "grant ec2:ReplaceNetworkAclAssociation" in str(error)
    error = aws_error("elbv2 eu-central-1: modify_rule", {"Code": "AccessDenied"})
    assert "grant elasticloadbalancing:ModifyRule" in str(error)
