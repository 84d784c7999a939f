"""`clew chat`: a terminal agent that shows its window. `Desk` is what it does, `Chat` how that looks."""

from clew.chat.app import Chat
from clew.chat.desk import Desk

__all__ = ["Chat", "Desk"]
