"""Effect of keys: choose an item, and give a command about it after a reason and a confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bus.characters import all_seen
from reactor.cli.screen.item_lines import Item
from reactor.runtime.visible import visible
from reactor.views.pending import about, waits

COMMENT_MAX = 1_024
ENTER, BACKSPACE, ESCAPE, CLEAR = "\r\n", "\x7f\b", "\x1b", "\x15"


class Verb(StrEnum):
    """A command that a key gives."""

    APPROVE = "approve"
    REJECT = "reject"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command as it is being typed."""

    verb: Verb
    rule: str
    """Its name; for a pause and a resume a pattern."""
    item: Item | None
    """Item that the command is about; None: a pause or a resume of all rules."""
    comment: str = ""
    confirming: bool = False

    @property
    def words(self) -> str:
        """Sentence for what is about to be done."""
        if self.verb in (Verb.PAUSE, Verb.RESUME):
            return visible(f"{self.verb} {'all rules' if self.rule == '*' else f'rule {self.rule}'}")
        group = self.item.group if self.item is not None else None
        asked = group.held.detail if group is not None and group.held is not None else ""
        on = about(group) if group is not None else ""
        return visible(f"{self.verb} {self.rule} on {on}: {asked}")


@dataclass(slots=True)
class Dialog:
    """The keys so far."""

    chosen: str = ""
    """The key of the chosen item: it stays chosen where others come and go."""
    wanted: TypedCommand | None = None
    said: str = ""
    """Result of the last key."""
    quit: bool = False
    _confirmed: list[TypedCommand] = field(default_factory=list)

    def confirmed(self) -> list[TypedCommand]:
        """Give the commands that were confirmed since the last time."""
        taken, self._confirmed = self._confirmed, []
        return taken

    def position(self, found: Sequence[Item]) -> int:
        """Give the number of the chosen item, the first where it is gone; -1: there is none."""
        keys = [one.row["key"] for one in found]
        return keys.index(self.chosen) if self.chosen in keys else (0 if keys else -1)

    def press(self, key: str, found: Sequence[Item]) -> None:
        """Take one key: a character, `up` or `down`."""
        if self.wanted is None:
            self._command(key, found)
        elif self.wanted.confirming:
            self._answer(key, self.wanted)
        else:
            self._type(key, self.wanted)

    def _command(self, key: str, found: Sequence[Item]) -> None:
        at = self.position(found)
        item = found[at] if at >= 0 else None
        self.said = ""
        match key:
            case "q":
                self.quit = True
            case "down" | "j" | "up" | "k" if found:
                step = 1 if key in ("down", "j") else -1
                self.chosen = str(found[min(max(at + step, 0), len(found) - 1)].row["key"])
            case "a" | "r" if item is not None and waits(item.group):
                self._ask(TypedCommand(Verb.APPROVE if key == "a" else Verb.REJECT, item.group.rule, item))
            case "a" | "r":
                self.said = "the chosen item waits for no approval"
            case "p" | "u" if item is not None:
                self._ask(TypedCommand(Verb.PAUSE if key == "p" else Verb.RESUME, item.group.rule, item))
            case "P" | "p":
                self._ask(TypedCommand(Verb.PAUSE, "*", None))
            case "U" | "u":
                self._ask(TypedCommand(Verb.RESUME, "*", None))

    def _ask(self, wanted: TypedCommand) -> None:
        self.wanted = wanted
        if wanted.item is not None:
            self.chosen = str(wanted.item.row["key"])

    def _type(self, key: str, wanted: TypedCommand) -> None:
        if key == ESCAPE:
            self._cancel()
        elif key in ENTER:
            if wanted.comment.strip():
                self.wanted = replace(wanted, confirming=True)
            else:
                self.said = "give a reason: the audit records it"
        elif key in BACKSPACE:
            self.wanted = replace(wanted, comment=wanted.comment[:-1])
        elif key == CLEAR:
            self.wanted = replace(wanted, comment="")
        elif len(key) == 1 and len(wanted.comment) < COMMENT_MAX:
            try:
                self.wanted, self.said = replace(wanted, comment=wanted.comment + all_seen(key)), ""
            except ValueError as error:
                self.said = f"the reason {error}"

    def _answer(self, key: str, wanted: TypedCommand) -> None:
        if key in ("y", "Y"):
            self._confirmed.append(replace(wanted, comment=wanted.comment.strip()))
            self.wanted, self.said = None, f"{wanted.verb}: sent"
        else:
            self._cancel()

    def _cancel(self) -> None:
        self.wanted, self.said = None, "nothing was done"
