"""Where one types."""

from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea

HINT = "Say something; / and Tab for commands; Ctrl+J for a new line"


class PromptBox(TextArea):
    """Enter sends, Ctrl+J begins a new line, Tab after a slash completes, Up and Down bring back what was sent."""

    class Sent(Message):
        """Something was typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Completing(Message):
        """The beginning of a command was typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, compact=True, placeholder=HINT, highlight_cursor_line=False)
        self._sent: list[str] = []
        self._at = 0

    def replace_with(self, text: str) -> None:
        """Have this there instead, to be edited."""
        self.text = text
        self.move_cursor(self.document.end)

    async def _on_key(self, event: Key) -> None:
        match event.key:
            case "enter":
                self._send()
            case "ctrl+j" | "shift+enter" | "alt+enter":
                self.insert("\n")
            case "tab" if self.text.startswith("/"):
                self.post_message(self.Completing(self.text))
            case "up" if self._at > 0 and not self.cursor_location[0]:
                self._go(self._at - 1)
            case "down" if self._at < len(self._sent) and self.cursor_at_last_line:
                self._go(self._at + 1)
            case _:
                await super()._on_key(event)
                return
        event.stop()
        event.prevent_default()

    def _send(self) -> None:
        text = self.text.strip()
        if text:
            self._sent.append(text)
            self._at = len(self._sent)
            self.text = ""
            self.post_message(self.Sent(text))

    def _go(self, at: int) -> None:
        self._at = at
        self.replace_with(self._sent[at] if at < len(self._sent) else "")
