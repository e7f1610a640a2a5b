"""Health by a Karmada script: `InterpretHealth(observedObj)` in Lua, without a way out. The one importer of lupa.

A script sees the basic functions, `math`, `table` and the harmless part of `string`. What could run for long inside
one instruction is not there (patterns, `string.rep`, `table.move`), or has a limit; so are files, time, `require`,
`pcall` and `load`. A run has 200,000 instructions, half a second of CPU and 16 MiB. Karmada runs Lua 5.1: 5.4 is taken
because it can refuse byte code, and 306 of Karmada's 318 own cases agree under both (measured).
"""

from __future__ import annotations

from typing import Any

from bus.messages import Health
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.errors import SettingsError
from reactor.sources.kubernetes.workload_health import HealthVerdict

MEMORY_BYTES = 16 << 20
_NO_LIMIT = 1 << 40
_SANDBOX = """
local sethook, clock, find = debug.sethook, os.clock, string.find
local load, error, pairs, type = load, error, pairs, type
local INSTRUCTIONS, SECONDS, EVERY = 200000, 0.5, 100
local function only(from, names)
  local kept = {}
  for name in names:gmatch('%w+') do kept[name] = from[name] end
  return kept
end
local strings = only(string, 'byte char format len lower reverse sub upper')
-- Plain text only: a pattern can take hours within one instruction. The lengths bound what a search may cost.
strings.find = function(text, wanted, from)
  if find(wanted, '[%^%$%(%)%%%.%[%]%*%+%-%?]') then error('string.find: patterns are not offered, only plain text') end
  if #text > 65536 or #wanted > 256 then error('string.find: the text is too long') end
  return find(text, wanted, from, true)
end
local tables = only(table, 'concat insert remove sort unpack')
local maths = only(math, 'abs ceil floor fmod huge max min pi sqrt')
local basic = only(_G, 'assert error ipairs next pairs select tonumber tostring type')
local meta = getmetatable('')
meta.__index, meta.__metatable = strings, false
local function run(script, object)
  local env = {string = strings, table = tables, math = maths, unpack = tables.unpack, _VERSION = 'Lua 5.1'}
  for name, value in pairs(basic) do env[name] = value end
  local began, left = clock(), INSTRUCTIONS / EVERY
  sethook(function()
    left = left - 1
    if left < 0 then error('took more than ' .. INSTRUCTIONS .. ' instructions', 0) end
    if clock() - began > SECONDS then error('took more than ' .. SECONDS .. ' s', 0) end
  end, '', EVERY)
  local chunk, problem = load(script, '=lua', 't', env)
  if not chunk then error(problem, 0) end
  chunk()
  if type(env.InterpretHealth) ~= 'function' then error('defines no function InterpretHealth', 0) end
  local answer = object and env.InterpretHealth(object)
  sethook()
  return answer
end
local globals = _G
for name in pairs(globals) do globals[name] = nil end
return run
"""


class LuaHealth:
    """One script, in a Lua of its own."""

    def __init__(self, script: str) -> None:
        """Raises SettingsError where lupa is not installed, or the script is no script."""
        try:
            from lupa import lua54
        except ImportError as error:
            raise SettingsError("health.lua needs the extra: install alert-reactor[lua]") from error
        self._script = script
        self._error: type[Exception] = lua54.LuaError
        self._lua = lua54.LuaRuntime(
            unpack_returned_tuples=True, register_eval=False, register_builtins=False, attribute_filter=_nothing,
            max_memory=MEMORY_BYTES,
        )  # fmt: skip
        self._run = self._lua.execute(_SANDBOX)
        try:
            self._run(script, None)
        except self._error as error:
            raise SettingsError(f"health.lua: {_words(error)}") from error

    def judge(self, found: JsonObject) -> HealthVerdict:
        """Give what the script says; anything but true or false is Unknown, an error too."""
        try:
            answer = self._run(self._script, self._table(found))
        except (self._error, OverflowError, RecursionError, TypeError, ValueError) as error:
            return HealthVerdict(Health.UNKNOWN, f"health.lua: {_words(error)}")
        if not isinstance(answer, bool):
            return HealthVerdict(Health.UNKNOWN, "health.lua: InterpretHealth gave neither true nor false")
        return HealthVerdict(
            Health.HEALTHY if answer else Health.UNHEALTHY, f"InterpretHealth gave {str(answer).lower()}"
        )

    def _table(self, found: JsonObject) -> Any:
        """Give it as a Lua table, and give the script its memory on top.

        Outside of a running script lupa ends the process where memory runs out (measured), so while the object is
        turned into a table there is no limit. An API server's objects have one of their own, of 1.5 MiB.
        """
        self._lua.set_max_memory(_NO_LIMIT)
        table = self._lua.table_from(found, recursive=True)
        self._lua.gccollect()
        self._lua.set_max_memory(self._lua.get_memory_used() + MEMORY_BYTES)
        return table


def _nothing(obj: object, name: str, setting: bool) -> Any:  # noqa: ARG001 - lupa's own signature
    raise AttributeError("a script sees no attributes of Python objects")


def _words(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
