"""Health by an expression of the Common Expression Language over `object`. The one importer of cel-expr-python.

    health: {cel: "object.status.readyReplicas >= object.spec.replicas"}

The engine itself limits an evaluation: 10,000 steps of comprehensions, nesting of 32, expressions in linear time. An
error while it runs (a missing field, a division by zero) comes back as a value, and is Unknown.
"""

from __future__ import annotations

from bus.messages import Health
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.errors import SettingsError
from reactor.sources.kubernetes.workload_health import HealthVerdict


class CelHealth:
    """One expression."""

    def __init__(self, expression: str) -> None:
        """Raises SettingsError where the engine is not installed, or the expression can give no true or false."""
        try:
            from cel_expr_python import cel
        except ImportError as error:
            raise SettingsError("health.cel needs the extra: install alert-reactor[cel]") from error
        try:
            self._expression = cel.NewEnv(variables={"object": cel.Type.DYN}).compile(expression)
        except RuntimeError as error:
            raise SettingsError(f"health.cel: {' '.join(str(error).split())}") from error
        self._bool, self._error = cel.Type.BOOL, cel.Type.ERROR
        if self._expression.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
            given = self._expression.return_type()
            raise SettingsError(f"health.cel: {expression!r} gives {given}, and has to give true or false")

    def judge(self, found: JsonObject) -> HealthVerdict:
        """Give what the expression says; anything but true or false is Unknown, an error too."""
        try:
            value = self._expression.eval(data={"object": found})
        except RuntimeError as error:  # its budget, and text that is no UTF-8
            return HealthVerdict(Health.UNKNOWN, f"health.cel: {error}")
        if value.type() == self._error:
            return HealthVerdict(Health.UNKNOWN, f"health.cel: {value.value()}")
        if value.type() != self._bool:
            return HealthVerdict(Health.UNKNOWN, f"health.cel: gave {value.type()}, neither true nor false")
        healthy = bool(value.value())
        return HealthVerdict(
            Health.HEALTHY if healthy else Health.UNHEALTHY, f"the expression gave {str(healthy).lower()}"
        )
