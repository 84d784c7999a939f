"""`clew chat`: a terminal agent that shows its window. `ChatBackend` is what it does, `Chat` how that looks."""

from clew.chat.app import Chat
from clew.chat.backend import ChatBackend

__all__ = ["Chat", "ChatBackend"]
