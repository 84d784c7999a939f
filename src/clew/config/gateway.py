"""The settings of `clew serve`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from clew.config.kinds import ADDRESS, SWITCH, SWITCH_OR_AUTO, TEXT, TEXT_LIST, choice, count
from clew.config.setting import Setting

PORT = 8377


@dataclass(frozen=True, slots=True)
class UpstreamTable:
    """A provider, or another gateway before one."""

    url: Annotated[str | None, Setting(ADDRESS, "Its base URL, with or without /v1", "that of the provider")] = None
    kind: Annotated[str, Setting(choice("openai", "anthropic", "gemini"), "Whose API it speaks", "openai")] = "openai"
    key: Annotated[
        str | None, Setting(TEXT, "The environment variable with its key", "the client's own key is passed on")
    ] = None
    models: Annotated[tuple[str, ...], Setting(TEXT_LIST, "Patterns of the models it serves", "all")] = ("*",)


@dataclass(frozen=True, slots=True)
class ClientTable:
    """A client, or a team of them, that sees its own conversations alone."""

    key: Annotated[str | None, Setting(TEXT, "The environment variable with its key for the gateway", "none")] = None


@dataclass(frozen=True, slots=True)
class GatewayTable:
    """The gateway."""

    host: Annotated[str, Setting(TEXT, "The address it listens on; any but loopback wants keys")] = "127.0.0.1"
    port: Annotated[int, Setting(count(0, PORT, 65_535), "The port it listens on; 0: any that is free")] = PORT
    compaction: Annotated[
        Literal["prevent", "answer", "pass"],
        Setting(
            choice("prevent", "answer", "pass"),
            "A client's own compaction: made needless, answered from the log when it comes, or left to its model",
        ),
    ] = "prevent"
    summary: Annotated[
        Literal["none", "own"],
        Setting(
            choice("none", "own"),
            "Whether conversations' own models write chapters: clew asks them with API keys, never with logins",
        ),
    ] = "none"
    tools: Annotated[
        bool | Literal["auto"],
        Setting(
            SWITCH_OR_AUTO,
            "Offer recall and search_history with the method auto, too; auto: where clients take them well",
        ),
    ] = "auto"
    closed: Annotated[bool, Setting(SWITCH, "Refuse a request that clew fails on; else it goes on as it came")] = False
    hosts: Annotated[
        tuple[str, ...],
        Setting(
            TEXT_LIST, "Host names it is reached by, beside loopback's; also origins of web pages that may ask", "none"
        ),
    ] = ()
    upstreams: Mapping[str, UpstreamTable] = field(default_factory=dict)
    clients: Mapping[str, ClientTable] = field(default_factory=dict)
