"""Sessions turn by turn in the shapes that real clients send, with words of our own; for tests and measurements."""

from collections.abc import Iterator, Mapping

from made_clients.chatting import Aider, Copilot, Crush, Pi, QwenCode
from made_clients.claude import ClaudeCode, ClaudeCodeNew
from made_clients.codex import Codex, CodexLite
from made_clients.gemini import GeminiCLI
from made_clients.opencode import OpenCode, OpenCodeMessages, OpenCodeResponses
from made_clients.shape import Client, ClientRequest, RequestKind, play, script
from made_clients.wording import Pen

__all__ = ["CLIENTS", "Client", "ClientRequest", "RequestKind", "session"]

CLIENTS: Mapping[str, type[Client]] = {
    client.name: client
    for client in (
        ClaudeCode,
        ClaudeCodeNew,
        Codex,
        CodexLite,
        OpenCode,
        OpenCodeMessages,
        OpenCodeResponses,
        Pi,
        GeminiCLI,
        QwenCode,
        Copilot,
        Crush,
        Aider,
    )
}
TURNS = 28


def session(client: str, word: str, turns: int = TURNS, seed: int = 0) -> Iterator[ClientRequest]:
    """All requests of one session; `word` stands in all that is said in it. The same for the same arguments."""
    pen = Pen(client, word, seed)
    made = CLIENTS[client](pen, word)
    return play(made, script(pen, word, turns, made.in_loop, made.delegates))
