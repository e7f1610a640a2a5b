"""Rate at which one source's alerts go into the journal."""

from __future__ import annotations

from reactor.webhook.token_bucket import TokenBucket

BURST = 5_000


def test_a_burst_goes_at_once_and_the_rest_at_its_pace() -> None:
    bucket = TokenBucket(100, BURST, now=0)
    assert bucket.take(BURST, 0) == 0
    assert bucket.take(50, 0) == 0.5
    assert bucket.take(50, 0) == 1
    assert bucket.take(50, 1) == 0.5
    assert (bucket.owed(1), bucket.owed(1.5), bucket.owed(9)) == (0.5, 0, 0)


def test_silence_fills_it_up_to_a_burst_and_no_further() -> None:
    bucket = TokenBucket(100, BURST, now=0)
    bucket.take(BURST, 0)
    assert bucket.take(BURST, 1_000_000) == 0
    assert bucket.take(100, 1_000_000) == 1
