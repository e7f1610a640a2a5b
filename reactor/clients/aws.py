"""Amazon's APIs: the one importer of boto3 (the extra `aws`). It is imported lazily, for it costs half a second.

boto3 is synchronous, so every call runs in a worker thread of its own: an action that is cancelled stops between two
calls, never in the middle of one. Credentials are boto3's business (environment, IRSA, instance profile).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound
from reactor.runtime.errors import Retryable, SettingsError, Terminal
from reactor.runtime.threads import CLOUD

CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
CALL_SECONDS = CONNECT_SECONDS + READ_SECONDS
ATTEMPTS_MAX = 1  # what fails is told, and the engine asks again: an abort waits until a write can no longer land
PAGES_MAX = 100  # 100,000 subnets: more is a server that never stops saying NextToken

# Codes whose meaning is not in their ending. Source: Amazon EC2 API reference, "Error codes for the Amazon EC2 API".
_FORBIDDEN = frozenset(
    {"UnauthorizedOperation", "AuthFailure", "Blocked", "OptInRequired", "PendingVerification", "ExpiredToken",
     "InvalidClientTokenId", "SignatureDoesNotMatch", "AccessDenied", "AccessDeniedException", "RequestExpired"}
)  # fmt: skip
_BUSY = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "Unavailable", "ServiceUnavailable", "InternalError",
     "InternalFailure", "RequestTimeout", "PriorRequestNotComplete"}
)  # fmt: skip
_MOVED = frozenset({"InvalidAssociationID.NotFound", "DependencyViolation", "IncorrectState", "ConcurrentTagAccess"})
"""The world has changed since it was read: read it again."""


_IAM = {"elbv2": "elasticloadbalancing"}
"""Services that IAM calls otherwise than boto3 does."""


class Ec2(Protocol):
    """EC2 in one region: its operations by their names, with their parameters as the API reference has them.

    Every call raises NotFound, Forbidden, Invalid, Conflict or ApiUnavailable, with the operation named.
    """

    @property
    def region(self) -> str:
        """AWS region that it calls."""
        ...

    async def read(self, operation: str, key: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        """Give all items under `key` of a Describe operation, page by page."""
        ...

    async def write(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Call a mutating operation and give its answer."""
        ...


class Aws(Protocol):
    """One of Amazon's other APIs. Calls raise as those of Ec2 do."""

    async def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Call an operation and give its answer."""
        ...


class Regions:
    """EC2 by region, connected at first use and kept."""

    def __init__(self, proxy: str | None = None) -> None:
        self._known: dict[str, Ec2] = {}
        self._proxy = proxy

    async def get(self, region: str) -> Ec2:
        """Give EC2 of a region. Raises SettingsError where boto3 is not installed or knows no such region."""
        if region not in self._known:
            self._known[region] = await CLOUD.run(partial(connect, region, proxy=self._proxy))
        return self._known[region]


class LazyAws:
    """One of Amazon's APIs, connected at its first call; implements Aws."""

    def __init__(self, service: str, region: str, what: str, proxy: str | None = None) -> None:
        """`what` asks for it: a key of the settings, for errors."""
        self._proxy = proxy
        self._service, self._region, self._what = service, region, what
        self._boto: Boto | None = None

    async def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        if self._boto is None:
            self._boto = await CLOUD.run(partial(connect, self._region, self._service, self._what, self._proxy))
        return await self._boto.write(operation, **parameters)


def connect(
    region: str, service: str = "ec2", what: str = "network.provider AwsNetworkAcl", proxy: str | None = None
) -> Boto:
    """Give an API in a region, not yet called. Raises SettingsError where boto3 is not installed or knows no region so.

    Takes half a second of CPU: call it in a worker thread. `what` asks for it. `proxy`: on the way there; None: there
    is none, whatever the environment says.
    """
    try:
        import boto3  # the extra: only who isolates on AWS has it
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise SettingsError(f"{what} needs boto3: install alert-reactor[aws]") from error
    retries: Any = {"mode": "standard", "total_max_attempts": ATTEMPTS_MAX}
    config = Config(
        connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries=retries,
        proxies=dict.fromkeys(("http", "https"), proxy) if proxy else {},
    )  # fmt: skip
    try:
        return Boto(region, boto3.client(service, region_name=region, config=config), service)
    except (BotoCoreError, ValueError) as error:
        where = "network.region" if service == "ec2" else f"{what}: region"
        raise SettingsError(f"{where} {region!r}: {error}") from error


class Boto:
    """An API by boto3; implements Ec2."""

    def __init__(self, region: str, client: Any, service: str = "ec2") -> None:
        self._region = region
        self._client = client
        self._service = service

    @property
    def region(self) -> str:
        return self._region

    async def read(self, operation: str, key: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        items: list[Mapping[str, Any]] = []
        for _ in range(PAGES_MAX):
            page = await self.write(operation, **parameters)
            items += page.get(key) or []
            if not page.get("NextToken"):
                return items
            parameters["NextToken"] = page["NextToken"]
        raise ApiUnavailable(f"ec2 {self._region}: {operation} gave more than {PAGES_MAX} pages")

    async def write(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        call = asyncio.ensure_future(CLOUD.run(partial(self._called, operation, parameters)))
        try:
            answer: Mapping[str, Any] = await asyncio.shield(call)
        except asyncio.CancelledError:
            # A thread cannot be stopped: who is told that we have ended must find its write landed, not on its way.
            await asyncio.wait([call])
            raise
        return answer

    def _called(self, operation: str, parameters: Mapping[str, Any]) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

        about = f"{self._service} {self._region}: {operation}"
        try:
            return getattr(self._client, operation)(**parameters)
        except ClientError as error:
            raise aws_error(about, error.response.get("Error", {})) from error
        except NoCredentialsError as error:
            raise Forbidden(f"{about}: {error}; give the reactor's service account an IAM role (IRSA)") from error
        except ParamValidationError as error:
            raise Invalid(f"{about}: {error}") from error
        except BotoCoreError as error:  # no connection, no answer in time: it may have taken effect
            raise ApiUnavailable(f"{about} got no answer: {error}") from error


def aws_error(about: str, error: Mapping[str, Any]) -> Terminal | Retryable:
    """Give the error for an answer other than success. Pure, so that the table can be tested."""
    code, words = str(error.get("Code", "")), str(error.get("Message", ""))
    message = f"{about} was answered {code}: {' '.join(words.split())[:300]}"
    if code in _FORBIDDEN:
        return Forbidden(f"{message}; grant {_action(about)} to the reactor's IAM role")
    if code in _BUSY or code.startswith("5"):
        return ApiUnavailable(message)
    if code in _MOVED:
        return Conflict(message)
    if code.endswith("NotFound") or code.startswith("NoSuch"):
        return NotFound(message)
    return Invalid(message)


def _action(about: str) -> str:
    """IAM's name of a call: `ec2:CreateNetworkAcl` for `ec2 eu-central-1: create_network_acl`."""
    service = about.partition(" ")[0]
    return f"{_IAM.get(service, service)}:" + "".join(word.capitalize() for word in about.rpartition(" ")[2].split("_"))
