"""The user's instructions for compaction, where the user keeps them."""

import asyncio

from clew.config import Places, assembled, edited
from clew.control import ContextController
from clew.screens import save


class KeptInstructions:
    """Instructions in the user's own file; who tells them to agents here is told of each change."""

    def __init__(self, places: Places, teller: ContextController | None = None) -> None:
        self._places, self._teller = places, teller

    def read(self) -> tuple[str, str]:
        """When, and how."""
        if self._teller:
            return self._teller.when, self._teller.how
        words = assembled(self._places).new_session
        return words.when, words.how

    async def write(self, when: str, how: str) -> str:
        """Have these hold from now on; says where they are kept. Raises `BadConfig`."""
        for key, value in (("new_session.when", when), ("new_session.how", how)):
            path, text, _ = edited(self._places, key, value or None)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            await asyncio.to_thread(save, path, text.encode())
        if self._teller:
            self._teller.when, self._teller.how = when, how
        return f"kept in {self._places.shown(self._places.user_file())}"
