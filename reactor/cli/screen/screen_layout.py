"""A screen of a certain size: what fits of the lines, with the chosen item in it, and the last line for keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from reactor.cli.screen.item_lines import ACTS_LEAST, Item

HELP = "up/down choose  a approve  r reject  p pause  P pause all  u resume  q quit"


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of the screen."""

    title: Text
    notices: Sequence[Text]
    found: Sequence[Item]
    blocks: Sequence[Sequence[Text]]
    """The lines of each of `found`."""
    chosen: int
    well: int
    """Number of groups that are listed nowhere, as all is well with them."""
    acts: Sequence[Text]
    bottom: Sequence[Text]


def screen(parts: Parts, width: int, height: int) -> Text:
    """Lay it out in so many columns and lines."""
    top = [parts.title, *parts.notices]
    room = max(height - len(top) - len(parts.bottom), 0)
    listed, at = _listed(parts)
    acts = [Text("RECENT ACTIONS", style="bold underline"), *(parts.acts or [Text("  none in the last month")])]
    for_acts = min(len(acts), max(ACTS_LEAST + 1, room - len(listed)))
    if room < 2 * (ACTS_LEAST + 1):
        for_acts = max(room - len(listed), 0)
    body = [*_around(listed, at, max(room - for_acts, 1)), *acts[:for_acts]]
    lines = [*top, *body[:room], *[Text()] * max(room - len(body), 0), *parts.bottom]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines[-height:])


def _listed(parts: Parts) -> tuple[list[Text], int]:
    """Give all lines of items under their headings, and where the last one of the chosen item is."""
    lines: list[Text] = []
    heading, at = "", 0
    for number, (item, block) in enumerate(zip(parts.found, parts.blocks, strict=True)):
        if item.heading != heading:
            heading = item.heading
            count = sum(one.heading == heading for one in parts.found)
            lines.append(Text(f"{heading} ({count})", style="bold underline"))
        lines += block
        if number == parts.chosen:
            at = len(lines) - 1
    calm = f"{parts.well} {'object is' if parts.well == 1 else 'objects are'} well"
    if not parts.found:
        lines.append(Text(f"All quiet: {calm}", style="green"))
    elif parts.well:
        lines.append(Text(calm, style="dim"))
    return lines, at


def _around(lines: list[Text], at: int, room: int) -> list[Text]:
    """Give so many lines, with the one at `at` among them, and say how many are left out."""
    if len(lines) <= room:
        return lines
    if room < 3:
        return lines[at : at + room]
    first = max(0, min(at - room + 2, len(lines) - room))
    shown = lines[first : first + room]
    if first > 0:
        shown[0] = Text(f"  … {first + 1} lines above", style="dim")
    if (below := len(lines) - first - room) > 0:
        shown[-1] = Text(f"  … {below + 1} lines below", style="dim")
    return shown
