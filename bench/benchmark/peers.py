"""Published packages at the same job, each as it comes, none tuned; none needs a model or a key."""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from benchmark.judging import Messages, Method, shown


class Peer(NamedTuple):
    """A package, its name in the tables, and how to get its method: an ImportError if it is not there."""

    package: str
    name: str
    method: Callable[[], Method]


def cut_to(size: int, messages: Messages) -> str:
    """What a peer returns beyond the size loses its beginning: some count messages, not their length."""
    return shown(messages)[-size:]


def langchain() -> Method:
    """`trim_messages`: the newest messages that fit."""
    lib = import_module("langchain_core.messages")

    def method(messages: Messages, size: int) -> str:
        given = lib.convert_to_messages([{**m, "content": m.get("content") or ""} for m in messages])
        found = lib.trim_messages(given, max_tokens=size, token_counter=_characters, strategy="last")
        return cut_to(size, lib.convert_to_openai_messages(found))

    def _characters(given: list[Any]) -> int:
        return len(shown(lib.convert_to_openai_messages(given))) + 1

    return method


def strands() -> Method:
    """The sliding window: the newest 40 messages, whatever their size."""
    manager = import_module("strands.agent.conversation_manager").SlidingWindowConversationManager

    class Agent:
        messages: list[Any]

    def method(messages: Messages, size: int) -> str:
        agent = Agent()
        agent.messages = [_turned(n, m) for n, m in enumerate(messages)]
        manager().apply_management(agent)
        return cut_to(size, [messages[m["at"]] for m in agent.messages])

    return method


def _turned(at: int, message: Any) -> dict[str, Any]:
    """A message as Strands has it, and where it came from."""
    blocks: list[dict[str, Any]] = []
    if message["role"] == "tool":
        said = [{"text": str(message["content"])}]
        blocks.append({"toolResult": {"toolUseId": message["tool_call_id"], "status": "success", "content": said}})
    elif message.get("content"):
        blocks.append({"text": str(message["content"])})
    calls = message.get("tool_calls") or ()
    blocks += [{"toolUse": {"toolUseId": c["id"], "name": c["function"]["name"], "input": {}}} for c in calls]
    return {"role": "assistant" if message["role"] == "assistant" else "user", "content": blocks, "at": at}


def praison() -> Method:
    """`ContextCompactor` with the strategy PRUNE: old results keep their first 200 and last 100 characters."""
    lib = import_module("praisonaiagents.compaction")

    def method(messages: Messages, size: int) -> str:
        compactor = lib.ContextCompactor(max_tokens=max(1, size // 4), strategy=lib.CompactionStrategy.PRUNE)
        return cut_to(size, compactor.compact([{**m, "content": m.get("content") or ""} for m in messages])[0])

    return method


def cliff() -> Method:
    """One mechanical summary of all but the newest turns: texts, signatures of calls, short results."""
    compact = import_module("cliffcompaction.cliff").compact
    dialect = import_module("cliffcompaction.dialects.openai_chat").DIALECT
    settings = import_module("cliffcompaction.config").Config()

    def method(messages: Messages, size: int) -> str:
        found = compact([dict(m) for m in messages], dialect, settings)
        return cut_to(size, messages if found is None else found.messages)

    return method


PEERS = (
    Peer("langchain-core", "langchain trim", langchain),
    Peer("strands-agents", "strands window", strands),
    Peer("praisonaiagents", "praisonai prune", praison),
    Peer("cliffcompaction", "cliffcompaction", cliff),
)


def installed() -> tuple[dict[str, Method], list[str]]:
    """The peers that are there, and a line for each about its version or its absence."""
    found: dict[str, Method] = {}
    lines = []
    for peer in PEERS:
        try:
            found[peer.name] = peer.method()
            lines.append(f"{peer.name}: {peer.package} {version(peer.package)}")
        except (ImportError, PackageNotFoundError):
            lines.append(f"{peer.name}: skipped, {peer.package} is not installed")
    return found, lines
