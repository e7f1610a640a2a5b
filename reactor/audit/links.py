"""Checks that the audit is whole: each record against the one before it, and the newest against the partition's state.

edited    a record's hash is not the one that the next record, or the partition's state, has of it
missing   a number is left out
inserted  a record that is in no chain, or whose number was there before
cut off   the first records, younger than retention removes them; or the newest, which the state still names
forged    its place in the chain is not signed with the key: a chain that was written again, or begins elsewhere
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bus.messages import ChainLink, DecisionRecord
from bus.port import Delivery
from reactor.audit.chain import Head
from reactor.audit.signing import Signer
from reactor.audit.verdict import AuditVerdict, Breach

PROMISE = "chain"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record as the stream holds it."""

    sequence: int
    chain: str
    """Its partition, or that of people's words: the token of its subject."""
    rule: str
    at: datetime
    stored_at: datetime
    """Time by the server's clock, which no record sets."""
    hash: str
    link: ChainLink | None

    @classmethod
    def of(cls, one: Delivery, record: DecisionRecord, hash_: str) -> StoredRecord:
        """A record as it came."""
        chain = one.subject.split(".")[2]
        return cls(one.sequence, chain, record.rule, record.decided_at, one.stored_at, hash_, record.chain)


def check(
    records: Iterable[StoredRecord], heads: Mapping[str, Head], kept_since: datetime | None,
    signer: Signer | None = None, *, signed_since: datetime | None = None,
) -> AuditVerdict:  # fmt: skip
    """Check all chains. `heads`: read before the records. What is younger than `kept_since` no retention has removed;
    None: it may have removed anything, as the stream is full. `signer`: has the key; None: signatures are not looked
    at. What has no signature, and none before it has, is counted as `unsigned`; stored after `signed_since`, it is
    forged."""
    chains: dict[str, list[StoredRecord]] = defaultdict(list)
    for one in records:
        chains[one.chain].append(one)
    verdict = AuditVerdict()
    for name in sorted({*chains, *heads}):
        chain = chains[name]
        found = [*_links(chain), *_first(chain, kept_since), *_end(name, chain, heads.get(name), kept_since)]
        if signer is not None:
            found += _signatures(name, chain, signer, signed_since)
            verdict.tested["unsigned"] += sum(one.link is None or not one.link.signature for one in chain)
        verdict.add(PROMISE, found, tested=len(chain))
    return verdict


def _signatures(
    name: str, chain: Sequence[StoredRecord], signer: Signer, signed_since: datetime | None
) -> Iterator[Breach]:  # fmt: skip
    """Breaches of records with another signature, and of those with none although they should have one: records before
    them have one, or they are newer than the key."""
    signed = False
    for one in chain:
        late = signed_since is not None and one.stored_at > signed_since
        if one.link is None:
            if late and not signed:  # else told already
                yield _breach(one, "forged: it is in no chain, and is newer than audit.signedSince")
            continue
        if one.link.signature and not signer.verifies(name, one.link):
            yield _breach(one, "forged: it was not signed with this key")
        elif signed and not one.link.signature:
            yield _breach(one, "forged: it is not signed, and records before it are")
        elif late and not one.link.signature:
            yield _breach(one, "forged: it is not signed, and is newer than audit.signedSince")
        signed = signed or bool(one.link.signature)


def _links(chain: Sequence[StoredRecord]) -> Iterator[Breach]:
    before: StoredRecord | None = None
    for one in chain:
        if one.link is None:
            if before is not None:  # at the beginning: written by a version before chains
                yield _breach(one, "inserted: it belongs to no chain")
            continue
        if before is not None and before.link is not None:
            gap = one.link.number - before.link.number
            if gap <= 0:
                yield _breach(one, f"inserted: its number {one.link.number} comes after {before.link.number}")
                continue
            if gap > 1:
                yield _breach(one, f"{gap - 1} records before it are missing")
            elif one.link.previous != before.hash:
                yield _breach(before, "edited: the record after it has another hash of it")
        before = one


def _first(chain: Sequence[StoredRecord], kept_since: datetime | None) -> Iterator[Breach]:
    first = next((one for one in chain if one.link is not None), None)
    if first is None or first.link is None or first.link.number == 1 or kept_since is None:
        return
    if first.link.previous_at is None or first.link.previous_at > kept_since:
        yield _breach(first, f"cut off: the {first.link.number - 1} records before it are gone, and were not yet old")


def _end(name: str, chain: Sequence[StoredRecord], head: Head | None, kept_since: datetime | None) -> Iterator[Breach]:
    if head is None or head.at is None:
        return
    old = kept_since is None or head.at <= kept_since
    named = next((one for one in chain if one.link is not None and one.link.number == head.number), None)
    if named is not None and named.hash != head.hash:
        yield _breach(named, "edited: the partition's state has another hash of it")
    elif not named and not old and not any(one.link is not None and one.link.number > head.number for one in chain):
        what = f"cut off: the records up to {head.number} are not all there"
        yield Breach(PROMISE, f"partition {name}", head.at.timestamp(), what)


def _breach(one: StoredRecord, what: str) -> Breach:
    return Breach(PROMISE, f"partition {one.chain} {one.rule} #{one.sequence}", one.at.timestamp(), what)
