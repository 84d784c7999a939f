"""Gemini CLI: no id of a session anywhere; opened again, it sends its history otherwise than before."""

from collections.abc import Iterator
from copy import deepcopy

from made_clients.shape import Client, ClientMessage, ClientRequest, Worked
from made_clients.tongues import GeminiTongue, tools_of
from made_clients.wording import Pen

COMPONENT = (
    "You are a specialized system component responsible for distilling chat history into a structured XML "
    "<state_snapshot>. Leave nothing out that somebody needs to go on."
)
WRITE = "Generate a new <state_snapshot> of all that was said."
JUDGE = "Critically evaluate the <state_snapshot> you wrote, and give a better one."


class GeminiCLI(Client):
    """With a key of the Gemini API."""

    name = "gemini-cli"
    format = "gemini"
    path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
    model = "gemini-3-pro"
    frame = 12_000

    def __init__(self, pen: Pen, conversation: str) -> None:
        super().__init__(pen, conversation)
        own = Pen(self.name)
        self.tongue = GeminiTongue(pen)
        self.system = own.prose(self.frame // 2)
        self.tools = tools_of(own, self.frame // 2, ("shell", "read_file", "replace", "glob", "web_fetch"))
        place = f"<session_context>\nToday is Sunday. The folder is /srv/app:\n{own.prose(200)}\n</session_context>"
        self.place = self.tongue.asked(place)
        self.history: list[ClientMessage] = [*self.place]

    def ask(self, text: str) -> None:
        self.history += self.tongue.asked(text)

    def work(self, work: Worked) -> None:
        self.history += self.tongue.worked(work)

    def answer(self, text: str) -> None:
        self.history += self.tongue.answered(text)

    def resume(self) -> None:
        """What the program does when it is told to resume: signatures are gone, results stand there twice."""
        for message in self.history:
            for part in message["parts"]:
                part.pop("thoughtSignature", None)
            message["parts"] += deepcopy([p for p in message["parts"] if "functionResponse" in p])

    def body(self) -> ClientMessage:
        return self.tongue.body(self.model, self.system, self.tools, deepcopy(self.history))

    def headers(self, kind: str) -> dict[str, str]:
        return {"content-type": "application/json", "user-agent": "GeminiCLI/0.61.0/gemini-3-pro (linux; x64)"}

    def compact(self, summary: str) -> Iterator[ClientRequest]:
        path = "/v1beta/models/gemini-3-pro:generateContent"
        snapshot = f"<state_snapshot>\n{summary}\n</state_snapshot>"
        asked = [*deepcopy(self.history), *self.tongue.asked(WRITE)]
        yield self.sent("compaction", self.tongue.body(self.model, COMPONENT, [], asked), path=path)
        asked = [*deepcopy(asked), *self.tongue.answered(snapshot), *self.tongue.asked(JUDGE)]
        yield self.sent("compaction", self.tongue.body(self.model, COMPONENT, [], asked), path=path)
        self.history = [*self.tongue.asked(snapshot), *self.tongue.answered("I see where we are.")]
