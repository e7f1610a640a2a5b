"""Route 53: the weights of the weighted records of one name and type.

One change batch deletes each old record exactly as it was read and creates the new one. Route 53 takes it whole or not
at all, and refuses it where the old record is another one by now: compare and set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reactor.clients.aws import CALL_SECONDS, Aws
from reactor.clients.balancers.balancer_port import WeightChange, Weights
from reactor.clients.kubernetes_port import Conflict, Invalid, NotFound
from reactor.settings.balancer_settings import Route53Settings as Settings

WEIGHT_MAX = 255
PAGE = 100
"""Records of one name that are read: Route 53 allows 100 weighted ones."""


class Route53:
    """The weighted records of one name; implements LoadBalancer."""

    timeout_seconds = CALL_SECONDS

    def __init__(self, name: str, settings: Settings, aws: Aws) -> None:
        self.name = name
        self._settings = settings
        self._aws = aws

    @property
    def every_seconds(self) -> float:
        return self._settings.every_seconds

    async def read(self) -> Weights:
        found = await self._aws.call(
            "list_resource_record_sets", HostedZoneId=self._settings.hosted_zone,
            StartRecordName=self._settings.record, StartRecordType=self._settings.type, MaxItems=str(PAGE),
        )  # fmt: skip
        mine = [one for one in found["ResourceRecordSets"] if self._is_mine(one)]
        if not mine:
            raise NotFound(f"{self._where}: {self._settings.type} {self._settings.record} has no records")
        if odd := [one for one in mine if "Weight" not in one]:
            raise Invalid(f"{self._where}: record {odd[0].get('SetIdentifier', '')!r} is not a weighted one")
        # What is written is conditional on all of these records, so they are the version.
        return Weights({one["SetIdentifier"]: one["Weight"] for one in mine}, version=json.dumps(mine, sort_keys=True))

    async def write(self, seen: Weights, change: WeightChange) -> None:
        records: dict[str, dict[str, Any]] = {one["SetIdentifier"]: one for one in json.loads(seen.version)}
        batch = batch_of(self._where, records, change.weights)
        comment = f"alert-reactor {change.decision}"[:256]
        try:
            await self._aws.call(
                "change_resource_record_sets", HostedZoneId=self._settings.hosted_zone,
                ChangeBatch={"Comment": comment, "Changes": batch},
            )  # fmt: skip
        except Invalid as error:
            if "InvalidChangeBatch" in str(error) and "Tried to" in str(error):
                raise Conflict(str(error)) from error
            raise

    async def close(self) -> None:
        """boto3 keeps its connections, and closes them by itself."""

    @property
    def _where(self) -> str:
        return f"loadBalancers.{self.name}"

    def _is_mine(self, record: Mapping[str, Any]) -> bool:
        # Route 53 writes `*` as \052, and ends each name with a dot.
        name = record["Name"].replace("\\052", "*").rstrip(".").lower()
        return (name, record["Type"]) == (self._settings.record.rstrip(".").lower(), self._settings.type)


def batch_of(where: str, records: Mapping[str, Mapping[str, Any]], weights: Mapping[str, int]) -> Sequence[Any]:
    """Give the changes that bring each named record to its weight, and leave all else of it as it is. Pure.

    Raises Invalid.
    """
    changes = []
    for name, weight in weights.items():
        if not 0 <= weight <= WEIGHT_MAX:
            raise Invalid(f"{where}: Route 53 takes no weight {weight} of {name!r}: 0 to {WEIGHT_MAX} go")
        old = records[name]
        if old["Weight"] != weight:
            changes.append({"Action": "DELETE", "ResourceRecordSet": old})
            changes.append({"Action": "CREATE", "ResourceRecordSet": {**old, "Weight": weight}})
    return changes
