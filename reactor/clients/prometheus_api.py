"""PromQL instant queries: the one importer of prometheus_api_client.

Its requests block, so they run in threads of their own: few, since a Prometheus that hangs must not take a thread per
query. A query that fails is an error and never an empty result: no answer is not a healthy answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from math import ceil
from typing import Any

import requests
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.util.retry import Retry

from reactor.clients.bounded_http import AnswerTooLarge, BoundedAdapter, ThreadCall
from reactor.clients.credentials import authorization
from reactor.clients.instant_queries import QueryFailed, QueryRefused, Sample
from reactor.clients.prometheus_warnings import PartialAnswer, Warnings
from reactor.clients.scraped import NotScrapedYet, Scraped
from reactor.runtime.errors import SettingsError
from reactor.runtime.threads import Threads
from reactor.settings.server_settings import Endpoint

BYTES_PER_SERIES = 1024
"""Bytes for each series of an answer, unpacked, where maxBytes is not set; a series of 20 labels has some 700."""
_SPARE_SECONDS = 1.0  # the server ends a query at its timeout, and may then still say so
_STATUS = re.compile(r"HTTP Status Code (\d{3})")
_MENDABLE = frozenset({400, 401, 403, 404, 405, 413, 414})
_EXCERPT_CHARACTERS = 300


class Prometheus:
    """One Prometheus of the settings; implements `promql.Queries`."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._name = name
        self._seconds = endpoint.timeout_seconds
        self._max_series = endpoint.max_series
        session = requests.Session()
        session.trust_env = False  # proxies are a matter of the settings, for all clients alike
        if endpoint.proxy_url:
            session.proxies = dict.fromkeys(("http", "https"), str(endpoint.proxy_url))
        session.verify = str(endpoint.ca_file.expanduser()) if endpoint.ca_file else True
        auth: Any = _Authorization(name, endpoint)
        self._client = PrometheusConnect(
            url=str(endpoint.url).rstrip("/"), session=session, auth=auth, timeout=ceil(self._seconds + _SPARE_SECONDS),
            retry=Retry(total=0),
        )  # fmt: skip
        bytes_max = endpoint.max_bytes or BYTES_PER_SERIES * endpoint.max_series
        session.mount(self._client.url, BoundedAdapter(bytes_max, max_retries=Retry(total=0)))  # in place of its own
        session.hooks["response"].append(Warnings(name))
        self._scraped = Scraped(self._client, session, self._seconds)
        self._threads = Threads(f"prometheus-{name}", endpoint.queries_at_once)
        self._calls = set[ThreadCall]()

    async def query(self, promql: str, *, at: datetime | None = None) -> list[Sample]:
        """Give the series of an instant query, now or at a moment. Raises QueryFailed or QueryRefused."""
        params = {
            "timeout": f"{self._seconds:g}",
            # One series more than is allowed, so that too many are noticed and a flood is never sent.
            "limit": str(self._max_series + 1),
            # Thanos would otherwise answer with what is left of the data when a store is down.
            "partial_response": "false",
        }
        if at is not None:
            params["time"] = str(at.timestamp())
        samples = _samples(f"prometheus.{self._name}", await self._ask(promql, params))
        if len(samples) > self._max_series:
            raise QueryRefused(
                f"prometheus.{self._name}: the result has more than {self._max_series} series: aggregate the query, "
                f"or raise prometheus.{self._name}.maxSeries"
            )
        return samples

    async def close(self) -> None:
        """Close the connections; queries that still run end."""
        for call in self._calls:
            call.end()
        self._client.close()

    async def _ask(self, promql: str, params: dict[str, str]) -> Any:
        where = f"prometheus.{self._name}"
        call = ThreadCall()
        self._calls.add(call)
        try:
            # requests' own timeout is per read: a server that drips would hold us, and its thread, without end.
            async with asyncio.timeout(self._seconds + 2 * _SPARE_SECONDS):
                return await self._threads.run(partial(self._answer, promql, params, call))
        except TimeoutError as error:
            raise QueryFailed(f"{where}: no answer within {self._seconds:g} s") from error
        except AnswerTooLarge as error:
            raise QueryRefused(
                f"{where}: {error}: aggregate the query, or raise prometheus.{self._name}.maxBytes"
            ) from error
        except PartialAnswer as error:
            raise QueryFailed(f"{where}: the answer is of a part of the data only: {error}") from error
        except NotScrapedYet as error:
            raise QueryFailed(f"{where}: {error}") from error
        except PrometheusApiClientException as error:
            raise _refusal(where, str(error)) from error
        except SettingsError as error:
            raise QueryRefused(str(error)) from error
        except OSError as error:  # every error of requests is one
            raise QueryFailed(f"{where}: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise QueryFailed(f"{where}: the answer is not Prometheus's JSON: {error!r}") from error
        finally:
            self._calls.discard(call)
            call.end()  # of a query whose caller no longer waits, the thread is free for the next

    def _answer(self, promql: str, params: dict[str, str], call: ThreadCall) -> Any:
        with call:
            answer = self._client.custom_query(promql, params)
            while "time" not in params and not self._scraped.was():
                answer = self._client.custom_query(promql, params)
            return answer


class _Authorization:
    """Signs a request. Without one, requests would take credentials from ~/.netrc."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._name = f"prometheus.{name}"
        self._endpoint = endpoint

    def __call__(self, request: Any) -> Any:
        header = authorization(self._name, self._endpoint)
        if header is not None:
            request.headers["Authorization"] = header
        return request


def _refusal(where: str, text: str) -> QueryFailed | QueryRefused:
    found = _STATUS.search(text)
    message = f"{where}: {text[:_EXCERPT_CHARACTERS]}"
    return QueryRefused(message) if found and int(found[1]) in _MENDABLE else QueryFailed(message)


def _samples(where: str, result: object) -> list[Sample]:
    """Read a vector or a scalar. Raises QueryRefused for results without one number per series."""
    try:
        if isinstance(result, Sequence) and len(result) == 2 and not isinstance(result[0], dict):
            return [_sample({}, result)]
        series: list[Any] = result if isinstance(result, list) else [result]
        return [_sample(one["metric"], one["value"]) for one in series]
    except KeyError as error:
        raise QueryRefused(f"{where}: the query gives no single numbers but ranges or histograms") from error
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise QueryFailed(f"{where}: the answer is not Prometheus's JSON: {error!r}") from error


def _sample(labels: Any, pair: Any) -> Sample:
    timestamp, value = pair
    return Sample({str(key): str(text) for key, text in labels.items()}, float(value), float(timestamp))
