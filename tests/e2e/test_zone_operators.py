"""Zones in people's hands, on the whole service: what is asked, what is refused, and by whose right."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from bus import permissions
from bus.server_users import configuration
from reactor.demo.kube import Fault, Forbid
from rules.core.reasons import Held
from tests.contract.bus.servers import Configured
from tests.e2e.rulefiles import reloaded, rewrite
from tests.e2e.waiting import until_told
from tests.e2e.zone_log import (
    check_budgets,
    check_only_the_sick_zone,
    check_whole,
)
from tests.e2e.zone_objects import ZONES
from tests.e2e.zone_service import RULE, SOURCES, STEPS, TOLERATION, WORDS, Zoned, is_at, zoned
from tests.e2e.zone_world import SICK, WEB
from tests.integration.bus.authority import jetstream


@pytest.fixture
async def prod(tmp_path: Path) -> AsyncIterator[Zoned]:
    async with zoned(tmp_path) as found:
        yield found


@pytest.mark.timeout(240)
async def test_people_look_isolate_abort_half_way_isolate_again_and_fail_back(prod: Zoned) -> None:
    before = prod.world.picture()
    code, plan = await prod.service.answered("zone", "plan", RULE, SICK)
    assert code == 0, plan
    assert all(step in plan for step in STEPS), plan
    assert "skipped, started by hand" in plan
    assert "comes back: by reactor zone failback, when" in plan, plan
    code, shown = await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS[:-1])
    assert (code, plan.splitlines()[1:] == shown.splitlines()[1 : len(plan.splitlines())]) == (1, True), shown
    assert (await prod.state()).isolation is None, "nobody said yes"

    prod.world.keep_web(WEB.replicas)  # it is half way for as long as commands take
    assert (await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS))[0] == 0
    await prod.until(lambda state: state.isolation and "Evacuate" in state.isolation.touched, "pods are leaving")
    code, said = await prod.service.answered("zone", "isolate", RULE, "eu-1b", *WORDS)
    assert (code, "AnotherInProgress" in said) == (1, True), said
    code, said = await prod.service.answered("zone", "failback", RULE, *WORDS)
    assert (code, "reactor zone abort" in said) == (1, True), said
    assert (await prod.service.answered("pause", "*", *WORDS))[0] == 0
    code, said = await prod.service.answered("zone", "abort", RULE, *WORDS)
    assert (code, "undoes: " in said, "Evacuate" in said) == (0, True, False), said
    await prod.over()
    prod.world.keep_web(WEB.budget)
    assert prod.world.picture() == before, "a pause locks nobody in"
    check_only_the_sick_zone(prod.world)
    code, said = await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS)
    assert (code, 'paused by reactor as "ann" since' in said.splitlines()[-1]) == (1, True), said
    assert (await prod.service.answered("zone", "abort", RULE, *WORDS))[0] == 0
    assert (await prod.service.answered("resume", "*", *WORDS))[0] == 0

    assert (await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS))[0] == 0
    await prod.isolated()
    assert prod.world.movable() == []
    code, said = await prod.service.answered("zone", "isolate", RULE, "eu-1b", *WORDS)
    assert (code, "MaxIsolatedZones" in said, SICK in said) == (1, True, True), said
    code, said = await prod.service.answered("zone", "retry", RULE, *WORDS)
    assert (code, "nothing has failed" in said) == (1, True), said
    assert (await prod.service.answered("zone", "failback", RULE, *WORDS))[0] == 0
    await prod.over()
    assert prod.world.picture() == before
    check_only_the_sick_zone(prod.world)
    check_budgets(prod.world)
    told = [sentence for record in await prod.records() for sentence in record["because"]]
    for word in ("IsolateZone", "FailbackZone"):
        assert any(f'reactor as "ann" said {word}: INC-7' in sentence for sentence in told), told


async def test_what_cannot_be_followed_is_refused_by_name_changes_nothing_and_is_in_the_audit(
    tmp_path: Path,
) -> None:
    zones = [{"name": name, "id": id_} for name, id_ in ZONES.items()] + [{"name": "eu-1d", "id": "euc1-az4"}]
    async with zoned(tmp_path, zones=zones) as prod:
        before = prod.world.picture()
        prod.world.serve("legacy", "a1", "a2")

        async def alone() -> bool:
            seen = (await prod.state()).seen
            return seen is not None and f"{SICK}:shop/legacy" in seen.single_zone_services

        await until_told(alone, "it is known that a service is in one zone")
        for zone, words in {
            "eu-9z": ("ZoneNotFound", "the rule has no zone eu-9z; it has eu-1a"),
            ZONES[SICK]: ("ZoneNotFound", f"{ZONES[SICK]} is the id of {SICK}"),
            "eu-1d": ("ZoneNotFound", "no node carries eu-1d; zones with nodes: eu-1a, eu-1b, eu-1c"),
            SICK: ("SingleZoneServices", "all copies in one zone: shop/legacy"),
        }.items():
            code, said = await prod.service.answered("zone", "isolate", RULE, zone, *WORDS)
            assert code == 1, said
            assert all(word in said.splitlines()[-1] for word in ("refused", *words)), said
            audited = [record["held"] or "" for record in await prod.records()]
            assert any(held.startswith(words[0]) and words[1] in held for held in audited), audited
            if (await prod.state()).isolation is not None:
                assert (await prod.service.answered("zone", "abort", RULE, *WORDS))[0] == 0
                await prod.over()
        assert prod.world.writes() == []
        assert prod.world.picture() == before


async def test_a_node_that_is_fenced_for_another_zone_is_never_fenced_again(prod: Zoned) -> None:
    """The value is being changed: the step fails with its reason and nothing is written. An abort clears all of it."""
    taint = {"key": "reactor/isolated-zone", "value": "euc1-az2", "effect": "NoSchedule"}
    prod.world.prod.patch("nodes", "a1", {"spec": {"taints": [taint]}})
    before = prod.world.picture()
    assert (await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS))[0] == 0

    async def refused() -> bool:
        return "ChangeRefused: node a1 is fenced for zone euc1-az2" in (await prod.zones())[SICK]["detail"]

    await until_told(refused, "reactor zone list says why")
    assert prod.world.picture() == before
    audited = [record["held"] or "" for record in await prod.records()]
    assert any("ChangeRefused" in held for held in audited), audited
    assert (await prod.service.answered("zone", "abort", RULE, *WORDS))[0] == 0
    await prod.over()
    assert {"reactor/isolated-zone" in str(node) for node in prod.world.picture().values()} == {False}


async def test_a_step_that_has_failed_is_gone_on_with_when_a_person_says_so(tmp_path: Path) -> None:
    async with zoned(tmp_path, stepTimeoutSeconds={"Fence": 6}) as prod:
        before = prod.world.picture()
        forbidden = prod.world.prod.faults.add(Fault(Forbid(), verb="patch", resource="nodes", name="a2"))
        assert (await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS))[0] == 0
        await prod.until(is_at("Failover", "Failed"), "the step that may not be done has failed")
        code, text = await prod.service.answered("zone", "list")
        assert (code, "Fence was not done within 6 s" in text, "Forbidden" in text) == (1, True, True), text
        forbidden.remove()
        assert (await prod.service.answered("zone", "retry", RULE, *WORDS))[0] == 0
        await prod.isolated()
        assert (await prod.service.answered("zone", "failback", RULE, *WORDS))[0] == 0
        await prod.over()
        assert prod.world.picture() == before
        check_whole(prod.world)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_zone_that_stays_sick_is_brought_back_by_force_and_left_open(prod: Zoned) -> None:
    before = prod.world.picture()
    prod.fail()
    await prod.isolated()
    assert (await prod.service.answered("zone", "failback", RULE, *WORDS))[0] == 0
    await prod.until(is_at("Failback", "Pending"), "it waits for the zone's health")
    code, said = await prod.service.answered("zone", "failback", RULE, *WORDS)
    assert (code, "--force opens it without proof" in said) == (1, True), said
    code, said = await prod.service.answered("zone", "failback", RULE, "--force", *WORDS)
    assert (code, "begins: at once" in said) == (0, True), said
    await prod.over()
    after = prod.world.picture()
    assert {name: fields[2] for name, fields in after.items()} == {name: fields[2] for name, fields in before.items()}
    state = await prod.state()
    assert SICK in state.left_open
    assert any("said FailbackZone: INC-7" in text for one in await prod.records() for text in one["because"])


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_zone_whose_rule_left_the_files_is_steered_also_by_a_new_process_and_nothing_new_is_begun(
    prod: Zoned,
) -> None:
    before = prod.world.picture()
    code, said = await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS)
    assert code == 0, said
    await prod.isolated()
    rewrite(prod.service, yaml.safe_dump({"apiVersion": "reactor/v1", "sources": SOURCES, "rules": []}))
    await reloaded(prod.service, "changed")
    code, said = await prod.service.answered("zone", "list")
    assert (code, f"in no rule file any more: reactor zone failback {RULE} brings it back" in said) == (0, True), said
    code, said = await prod.service.answered("zone", "isolate", RULE, "eu-1b", *WORDS)
    assert (code, "no ZoneIsolation rule" in said) == (1, True), said

    await prod.service.kill()
    await prod.service.start()
    await until_told(prod.service.is_ready, "it is ready")
    code, said = await prod.service.answered("zone", "failback", RULE, "--force", *WORDS)
    assert (code, "begins: at once" in said) == (0, True), said
    await prod.over()
    assert prod.world.picture() == before
    check_whole(prod.world)

    async def forgotten() -> bool:
        return await prod.service.printed("zone", "list") == "no ZoneIsolation rule\n"

    await until_told(forgotten, "with nothing left to bring back the rule is no more")


async def test_in_mode_approve_nothing_moves_before_a_person_has_approved(tmp_path: Path) -> None:
    async with zoned(tmp_path, mode="Approve") as prod:
        failed = prod.fail()

        async def waits() -> bool:
            return any(
                group.held is not None and group.held.reason == Held.AWAITING_APPROVAL
                for group in await prod.service.groups()
            )

        await until_told(waits, "the rule waits for a yes")
        assert prod.world.prod.monotonic() - failed >= TOLERATION
        assert prod.world.writes() == []
        asked = prod.world.prod.monotonic()
        code, said = await prod.service.answered("approve", RULE, *WORDS)
        assert code == 0, said
        await prod.isolated()
        assert min(write.at for write in prod.world.writes()) > asked
        assert prod.world.movable() == []
        check_whole(prod.world)


async def test_an_operator_without_the_right_is_refused_with_the_subject_and_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The users are those of `reactor bus permissions`, the reactor's too."""
    roles = ("reactor", "viewer", "operator", "zones")
    for role in roles:
        monkeypatch.setenv(f"NATS_PASSWORD_{role.upper()}", "change-me")
    users = f"{jetstream(tmp_path)}\n{configuration(map(permissions.of_role, roles))}"
    async with Configured(tmp_path / "nats", users) as server:

        def url(user: str) -> str:
            return server.url.replace("nats://", f"nats://{user}:change-me@")

        async with zoned(tmp_path, bus={"url": url("reactor")}) as prod:
            config = tmp_path / "operator.yaml"
            settings = yaml.safe_load(prod.service.config.read_text("utf-8"))
            for user, may in {"viewer": False, "operator": False, "zones": True}.items():
                settings["bus"]["url"] = url(user)
                config.write_text(yaml.safe_dump(settings), encoding="utf-8")
                assert (await prod.service.answered("zone", "list", config=config))[0] == 0
                asked = prod.world.prod.monotonic()
                code, said = await prod.service.answered("zone", "isolate", RULE, SICK, *WORDS, config=config)
                if may:
                    assert code == 0, said
                    await prod.until(lambda state: state.isolation, "it is followed")
                    continue
                assert (code, f"may not publish on reactor.commands.isolatezone.{user}" in said) == (1, True), said
                print(f"refused after {prod.world.prod.monotonic() - asked:.1f} s, the command's own start included")
                assert (await prod.state()).isolation is None
                assert prod.world.writes() == []
