"""Which MCP servers a chat starts: those of the user, and those of the project if the user allows it."""

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from clew.chat.allowing import AllowedRule
from clew.chat.entries import ScreenEntry, bounded, brief
from clew.chat.reading import ReadingScreen
from clew.chat.servers.declared import USER_SERVERS, DeclaredServers, project_servers, read_servers
from clew.chat.transcript import TranscriptView
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.chat.app import Chat

DESCRIPTION_SHOWN = 100  # characters


class AskServers(ModalScreen[bool | None]):
    """Shows what the project's file would start; nothing but a key that says so lets it happen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n", "dismiss(False)", "No"),
        Binding("escape", "dismiss(None)", "Not now"),
    ]

    def __init__(self, declared: DeclaredServers) -> None:
        super().__init__()
        self._declared = declared

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall question"):
            yield Static(Content("May this project start MCP servers?"), classes="title")
            yield TranscriptView()
            keys = "y yes, until the file changes · n no, until the file changes · Esc not now"
            yield Static(Content(keys), classes="keys")

    def on_mount(self) -> None:
        lines = [f"{each.name}: {each.reached}" for each in self._declared.servers]
        source = self._declared.servers[0].source
        text = "\n".join([f"{source} declares:", *lines, "", f"All of {source}:", self._declared.text])
        shown = self.query_one(TranscriptView)
        shown.show([ScreenEntry("result", bounded(text))])
        shown.focus()


async def start_servers(chat: "Chat") -> None:
    """Start what is declared and allowed, and say what came of it."""
    backend = chat.backend
    user = backend.places.user_file().with_name(USER_SERVERS)
    own = read_servers(user, backend.places.shown(user))
    project = project_servers(backend.folder)
    names = {server.name for server in own.servers}  # the user's own count more
    theirs = [server for server in project.servers if server.name not in names]
    wanted = [*own.servers, *(theirs if theirs and await _allowed(chat, project) else ())]
    running = [server.declared for server in backend.servers.all if server.state == "runs"]
    told = await backend.connect([server for server in wanted if server not in running])
    faults = [f"MCP: {fault}" for fault in (*own.faults, *project.faults)]
    if told or faults:
        chat.say("\n".join([*told, *faults]))


async def _allowed(chat: "Chat", project: DeclaredServers) -> bool:
    """Whether the user lets this file start servers: as they said before, or say now."""
    yes, no = AllowedRule(project.digest, "servers"), AllowedRule(project.digest, "no servers")
    rules = chat.backend.allowed.all()
    if yes in rules or no in rules:
        return yes in rules
    answer = await chat.ask(AskServers(project))
    if answer is None:
        return False
    try:
        chat.backend.allowed.add(yes if answer else no)
    except (ClewError, OSError) as error:
        chat.say(f"The answer could not be kept: {error}")
    if not answer:
        chat.say(f"The servers of {project.servers[0].source} are not started. /allowed takes this back.")
    return answer


async def list_servers(chat: "Chat", typed: str) -> None:
    """Show the MCP servers and their tools; those that failed or were not allowed are tried again."""
    if not chat.busy:
        await start_servers(chat)
    lines = []
    for server in chat.backend.servers.all:
        declared = server.declared
        lines += [f"{declared.name} · {server.state} · {declared.source}", f"  {declared.reached}"]
        lines += [f"  {tool.name}  {brief(tool.description, DESCRIPTION_SHOWN)}" for tool in server.tools]
        lines.append("")
    user = chat.backend.places.shown(chat.backend.places.user_file().with_name(USER_SERVERS))
    where = f"Servers are declared in .mcp.json of the project, or in {user} for all projects."
    await chat.ask(ReadingScreen("MCP servers", "\n".join([*lines, where])))
