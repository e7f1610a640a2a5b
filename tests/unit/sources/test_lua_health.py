"""Karmada scripts run, and nothing that they do reaches further than their own answer."""

from __future__ import annotations

import json
import time

import pytest

from bus.messages import Health
from reactor.runtime.errors import SettingsError
from reactor.sources.kubernetes import lua_health
from reactor.sources.kubernetes.lua_health import LuaHealth

pytest.importorskip("lupa", reason="the extra lua is not installed")
H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
OBJECT = {"metadata": {"generation": 3}, "spec": {}, "status": {"observedGeneration": 3, "phase": "Running"}}


def script(body: str) -> LuaHealth:
    return LuaHealth(f"function InterpretHealth(o) {body} end")


KARMADA_STYLE = """
function InterpretHealth(observedObj)
  if observedObj.status == nil or observedObj.status.conditions == nil then return false end
  for i = 1, #observedObj.status.conditions do
    local condition = observedObj.status.conditions[i]
    if condition.type == 'Ready' and condition.status == 'True' then return true end
  end
  return false
end
"""


def test_a_script_as_karmada_users_write_them_gives_health() -> None:
    health = LuaHealth(KARMADA_STYLE)
    ready = {"type": "Ready", "status": "True"}
    assert health.judge({"status": {"conditions": [{"type": "Synced"}, ready]}}).status is H
    assert health.judge({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}).status is U
    assert health.judge({}).status is U


@pytest.mark.parametrize("body", [
    "return nil", "return 1", "return 'true'", "return o.missing.field", "error('no')", "error({})",
    "return string.find('aaaaaaaaaaaaaaaaaaaa', '(a*)*b') ~= nil", "return ('x'):rep(1e9)",
    "return table.move({}, 1, 1e9, 2)",
])  # fmt: skip
def test_anything_but_true_or_false_is_unknown(body: str) -> None:
    verdict = script(body).judge(OBJECT)
    assert verdict.status is N
    assert verdict.detail.startswith("health.lua: ")


@pytest.mark.parametrize("body", [
    "while true do end",
    "local t = {} local i = 0 while true do i = i + 1 t[i] = tostring(i) .. 'xxxxxxxxxxxxxxxxxxxxxxxx' end",
    "local s = 'x' while true do s = s .. s end",
    "local s = 'x' for i = 1, 22 do s = s .. s end while true do local copy = s .. 'a' end",
    "local function f(n) return 1 + f(n + 1) end return f(1)",
    "local t = {} for i = 1, 1e9 do table.insert(t, 1, i) end",
    "return #{table.unpack({}, 1, 1e8)} == 1",
])  # fmt: skip
def test_a_script_that_takes_too_much_is_ended_soon(body: str) -> None:
    began = time.process_time()
    assert script(body).judge(OBJECT).status is N
    assert time.process_time() - began < 5


@pytest.mark.parametrize("name", [
    "os", "io", "debug", "package", "require", "load", "loadstring", "dofile", "loadfile", "python", "getmetatable",
    "setmetatable", "rawget", "rawset", "pcall", "xpcall", "coroutine", "collectgarbage", "_G", "string.rep",
    "string.match", "string.gsub", "string.gmatch", "string.dump", "string.pack", "table.move", "('x').rep",
])  # fmt: skip
def test_there_is_no_way_out(name: str) -> None:
    assert script(f"return {name} == nil").judge(OBJECT).status is H


def test_one_run_leaves_nothing_for_the_next() -> None:
    health = script("seen = (seen or 0) + 1 return seen == 1")
    assert [health.judge(OBJECT).status for _ in range(3)] == [H, H, H]


def test_plain_text_can_be_searched() -> None:
    assert script("return string.find(o.status.phase, 'Run') == 1").judge(OBJECT).status is H


@pytest.mark.parametrize("odd", [{"n": 2**70}, {"s": "\ud800"}, {"o": object()}])
def test_an_object_that_lua_cannot_hold_is_no_answer_of_the_script(odd: dict[str, object]) -> None:
    assert script("return o.n == nil and o.s == nil").judge(odd).status in (N, H)


def test_an_object_larger_than_the_scripts_memory_ends_neither_script_nor_process() -> None:
    spec = {"text": "x" * (lua_health.MEMORY_BYTES + 1), "lists": [[]] * 500_000}
    large = {"status": {"phase": "Running"}, "spec": spec}
    assert script("return o.status.phase == 'Running'").judge(json.loads(json.dumps(large))).status is H


@pytest.mark.parametrize(("text", "why"), [
    ("return", "defines no function InterpretHealth"), ("x =", "unexpected symbol"),
    ("local kube = require('kube')", "global 'require'"), ("while true do end", "more than 200000 instructions"),
    ("\x1bLua", "binary chunk"),
])  # fmt: skip
def test_a_script_that_cannot_work_is_refused_when_its_source_starts(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        LuaHealth(text)
