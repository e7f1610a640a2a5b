"""The Shoot's part of a zone isolation (GEP-21): its annotation, its status, and its maintenance. Pure.

GEP-21 has Gardener skip the maintenance flow while the annotation is there. A Gardener that does not know GEP-21 does
not, so automatic updates are switched off in the same write, and given back with the annotation's end: a rollout of
nodes in the remaining zones is the last thing that they need now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bus.json_text import parsed
from reactor.actions.annotations import notes_of
from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone.isolation_context import InProgress, IsolationContext
from reactor.actions.zone.zone_marks import AUTO_UPDATE, GARDENER_OPERATION, SHOOT_ISOLATED
from reactor.actions.zone.zone_nodes import drop_note, put_note
from reactor.clients.kubernetes_port import JsonObject

NO_UPDATES = {"kubernetesVersion": False, "machineImageVersion": False}


def asking(shoot: JsonObject, zone_id: str) -> list[JsonObject] | None:
    """Give the patch that asks Gardener to isolate the zone; None: it is asked. Raises Declined (ChangeRefused)."""
    asked = notes_of(shoot).get(SHOOT_ISOLATED)
    if asked == zone_id:
        return None
    if asked is not None:
        raise Declined("ChangeRefused", f"the Shoot's zone {asked} is isolated: end that before {zone_id} is (GEP-21)")
    return [
        *_tested(shoot),
        *_notes(shoot, {SHOOT_ISOLATED: zone_id, GARDENER_OPERATION: "reconcile", AUTO_UPDATE: _updates(shoot)}),
        *_without_updates(shoot),
    ]


def ending(shoot: JsonObject) -> list[JsonObject] | None:
    """Give the patch that asks Gardener to bring the zone back; None: nothing asks for its isolation."""
    notes = notes_of(shoot)
    if SHOOT_ISOLATED not in notes and AUTO_UPDATE not in notes:
        return None
    return [
        *_tested(shoot),
        *_restored(shoot, notes.get(AUTO_UPDATE)),
        *drop_note(shoot, SHOOT_ISOLATED),
        *drop_note(shoot, AUTO_UPDATE),
        *put_note(shoot, GARDENER_OPERATION, "reconcile"),
    ]


def isolated(shoot: JsonObject, isolation: IsolationContext) -> str:
    """Say that Gardener has isolated the zone, with its ID and its code. Raises InProgress, NotAsAsked, Declined."""
    status = _status(shoot)
    if not status:
        raise InProgress("the Shoot has no status.zoneIsolation yet; if none comes, this Gardener does not know GEP-21")
    code, is_ = status.get("isolatedZoneCode"), f"{status.get('phase')}/{status.get('status')}"
    if status.get("isolatedZoneID") != isolation.mark:
        raise InProgress(f"the Shoot's status still names zone {status.get('isolatedZoneID')}: {is_}")
    if code and code != isolation.zone:
        raise Declined("ZoneMismatch", f"the rule says that {isolation.mark} is {isolation.zone}, Gardener says {code}")
    if is_ == "Failover/Failed":
        raise NotAsAsked(f"Gardener could not isolate {isolation.mark} ({code}): see the Shoot's lastErrors")
    if is_ != "Failover/Done":
        raise InProgress(f"the Shoot is at {is_} for {isolation.mark} ({code})")
    return f"Gardener has isolated {isolation.mark} ({code})"


def returned(shoot: JsonObject, isolation: IsolationContext) -> str:
    """Say that Gardener has brought the zone back. Raises InProgress, NotAsAsked."""
    status = _status(shoot)
    is_ = f"{status.get('phase')}/{status.get('status')}"
    if is_ == "Failback/Failed":
        raise NotAsAsked(f"Gardener could not bring {isolation.mark} back: see the Shoot's lastErrors")
    if status and is_ != "Failback/Done":
        raise InProgress(f"the Shoot is at {is_} for {isolation.mark} ({status.get('isolatedZoneCode')})")
    return f"Gardener has brought {isolation.mark} back"


def _status(shoot: JsonObject) -> Mapping[str, Any]:
    return (shoot.get("status") or {}).get("zoneIsolation") or {}


def _tested(shoot: JsonObject) -> list[JsonObject]:
    version = shoot["metadata"].get("resourceVersion")
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]


def _notes(shoot: JsonObject, notes: Mapping[str, str]) -> list[JsonObject]:
    if not notes_of(shoot):
        return [{"op": "add", "path": "/metadata/annotations", "value": dict(notes)}]
    return [operation for key, value in notes.items() for operation in put_note(shoot, key, value)]


def _updates(shoot: JsonObject) -> str:
    return json.dumps(((shoot.get("spec") or {}).get("maintenance") or {}).get("autoUpdate"))


def _without_updates(shoot: JsonObject) -> list[JsonObject]:
    maintenance = (shoot.get("spec") or {}).get("maintenance")
    if maintenance is None:
        return [{"op": "add", "path": "/spec/maintenance", "value": {"autoUpdate": NO_UPDATES}}]
    return [{"op": "add", "path": "/spec/maintenance/autoUpdate", "value": NO_UPDATES}]


def _restored(shoot: JsonObject, saved: str | None) -> list[JsonObject]:
    now = ((shoot.get("spec") or {}).get("maintenance") or {}).get("autoUpdate")
    if saved is None or now != NO_UPDATES:
        return []  # it was changed since, which stays
    try:
        original = parsed(saved)
    except ValueError:
        return []  # edited beyond recognition: what it was is not known
    path = "/spec/maintenance/autoUpdate"
    if original is None:
        return [{"op": "remove", "path": path}]
    return [{"op": "replace", "path": path, "value": original}]
