"""Errors of the demo.

ReactorError
└── DemoError
    ├── ChildFailed    a process of the demo's world did not start, or ended by itself
    └── NotAsTold      the story did not go as it should: something is broken, or this machine is far too busy
"""

from __future__ import annotations

from reactor.runtime.errors import ReactorError


class DemoError(ReactorError):
    """The demo cannot go on."""


class ChildFailed(DemoError):
    """A process of the demo's world did not start, or ended by itself."""


class NotAsTold(DemoError):
    """The story did not go as it should."""
