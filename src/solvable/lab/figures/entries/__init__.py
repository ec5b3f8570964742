"""One module an entry: its `ENTRY` says what was published, how it is computed and simulated, and draws it."""

from __future__ import annotations
