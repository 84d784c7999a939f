"""Times as people read them, whatever a clock said."""

from datetime import UTC, datetime


def local(at: float) -> datetime:
    """A time on this machine's clock; one that no calendar has is its first or its last."""
    try:
        return datetime.fromtimestamp(at)
    except (ValueError, OverflowError, OSError):
        return datetime.max if at > 0 else datetime.min


def universal(at: float) -> datetime:
    """The same by the clock of all."""
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return (datetime.max if at > 0 else datetime.min).replace(tzinfo=UTC)
