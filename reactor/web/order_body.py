"""Body of every order: a reason, in characters that people see."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from bus.characters import all_seen
from reactor.web.page_access import Denied
from reactor.web.request_body import asked

Text = Annotated[str, Field(min_length=1, max_length=1_024)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]


class Comment(BaseModel):
    """Comment that every order has to give."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)

    comment: Text

    @field_validator("*")
    @classmethod
    def _seen(cls, value: Any) -> Any:
        """Invisible characters are refused: the audit must show exactly what was typed."""
        if isinstance(value, tuple):
            return tuple(all_seen(one.strip()) for one in value)
        return all_seen(value.strip()) if isinstance(value, str) else value

    @field_validator("comment")
    @classmethod
    def _said(cls, comment: str) -> str:
        if not comment:
            msg = "give a reason: the audit records it"
            raise ValueError(msg)
        return comment


Taken = TypeVar("Taken", bound=Comment)


async def taken(request: web.Request, kind: type[Taken], **given: str) -> Taken:
    """Give what the body of a request orders; `given`: what it need not say. Raises Denied where it is wrong."""
    try:
        return kind.model_validate({**given, **await asked(request)})
    except ValidationError as error:
        raise refused(error) from error


def refused(error: ValidationError) -> Denied:
    """Say what is wrong with an order: the first thing."""
    first = error.errors(include_url=False, include_input=False)[0]
    return Denied(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
