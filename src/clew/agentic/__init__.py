"""An agent that looks after its own context: told how full its window is, with tools to act on it."""

from clew.agentic.helm import Busy, Helm, Sent
from clew.agentic.offering import STEERING, offered
from clew.agentic.status import status

__all__ = ["STEERING", "Busy", "Helm", "Sent", "offered", "status"]
