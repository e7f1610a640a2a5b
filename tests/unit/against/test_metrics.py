"""Metrics that a query reads: names, and not the words of PromQL around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.workbench.livecheck.live_series import metrics


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("up", ["up"]),
        ("up == 0", ["up"]),
        ('job:slo_errors:rate5m{cluster="prod", zone!~"a|b"} > 14.4', ["job:slo_errors:rate5m"]),
        ("sum by (service) (rate(errors_total[1m])) / sum by (service) (rate(requests_total[1m]))",
         ["errors_total", "requests_total"]),
        ("sum(rate(errors_total[5m])) without (pod) > 0.5", ["errors_total"]),
        ("a and on(x) group_left(y, z) b unless ignoring (q) c or d offset 5m @ end()", ["a", "b", "c", "d"]),
        ("absent(up{job='it\\'s # no comment'}) # and this is one", ["up"]),
        ("histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m:1m])))", ["x_bucket"]),
        ("max_over_time(ALERTS{alertstate=\"firing\"}[1h]) > bool 0", []),
        ('{__name__="up"}', []),
        ("vector(1) + time() - Inf", []),
        ("label_replace(up, \"a\", \"$1\", \"b\", `(.*)`)", ["up"]),
        ("node_memory_free_bytes / node_memory_free_bytes", ["node_memory_free_bytes"]),
        ("1e3 * x > 0x10", ["x"]),
    ],
)  # fmt: skip
def test_metrics_are_found_in_a_query(query: str, names: list[str]) -> None:
    assert list(metrics(query)) == names


@given(st.text(max_size=60))
def test_any_text_is_read_without_a_fall(query: str) -> None:
    assert all(name for name in metrics(query))
