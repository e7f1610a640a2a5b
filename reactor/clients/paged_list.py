"""A LIST read page by page, as client-go does, and what is wrong with a page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject
from reactor.clients.list_page import ListPage
from reactor.clients.watching import WatchApi

PAGE_OBJECTS = 500  # client-go's page size
MAX_PAGES = 2000  # a million objects: more is a server that never stops saying "continue"


async def pages(api: WatchApi, path: str, selector: Mapping[str, str]) -> AsyncIterator[ListPage]:
    """Give the pages of a collection, all of one resourceVersion. Raises what `api.page` raises, and ApiUnavailable
    for an answer that is no list and for more than MAX_PAGES."""
    query = {"limit": str(PAGE_OBJECTS), **selector}
    for _ in range(MAX_PAGES):
        page = await api.page(path, query)
        if not page.version:
            raise ApiUnavailable(f"{api.cluster}: GET {path} was answered JSON that is no list")
        yield page
        if not page.token:
            return
        query["continue"] = page.token
    raise ApiUnavailable(f"{api.cluster}: GET {path} gave more than {MAX_PAGES} pages")


def items(api: WatchApi, path: str, page: ListPage) -> list[JsonObject]:
    """Give the objects of a page. Raises ApiUnavailable where it is no list."""
    try:
        return page.items
    except ValueError as error:
        raise ApiUnavailable(f"{api.cluster}: GET {path} was answered JSON that is no list: {error}") from error
