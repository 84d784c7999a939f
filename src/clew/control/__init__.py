"""An agent that looks after its own context: told how full its window is, with tools to act on it."""

from clew.control.controller import ContextController, SentBody
from clew.control.offering import STEERING, offered
from clew.control.status import status

__all__ = ["STEERING", "ContextController", "SentBody", "offered", "status"]
