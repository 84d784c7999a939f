"""Alt+Enter on terminals without the kitty keyboard protocol: they send Esc and Enter, which Textual reads as Enter."""

import os
import selectors
import sys
from codecs import getincrementaldecoder

from textual.driver import Driver

LEGACY_ALT_ENTER, ALT_ENTER = "\x1b\r", "\x1b[13;3u"
PASTE = "\x1b[200~"
LOOK_SECONDS = 0.1  # until Textual's parser is told that an escape sequence goes on no further
READ_BYTES = 4_096


def with_alt_enter(typed: str) -> str:
    """What a terminal sent at once, with an Alt+Enter that is known as such; a paste stays as it is."""
    return typed if PASTE in typed else typed.replace(LEGACY_ALT_ENTER, ALT_ENTER)


def driver(usual: type[Driver], platform: str = sys.platform) -> type[Driver]:
    """The driver that a chat reads keys with: the usual one, if that is none for terminals of this kind."""
    if platform == "win32":
        return usual
    from textual._xterm_parser import XTermParser
    from textual.drivers.linux_driver import LinuxDriver

    class AltEnterDriver(LinuxDriver):
        """Reads as `LinuxDriver` does, and tells Alt+Enter from Enter."""

        def run_input_thread(self) -> None:
            parser = XTermParser(self._debug)
            decode = getincrementaldecoder("utf-8")("replace").decode
            with selectors.SelectSelector() as selector:
                selector.register(self.fileno, selectors.EVENT_READ)
                while not self.exit_event.is_set():
                    typed = ""
                    if selector.select(LOOK_SECONDS):
                        typed = with_alt_enter(decode(os.read(self.fileno, READ_BYTES)))
                    for event in parser.feed(typed) if typed else ():
                        self.process_message(event)
                    for event in parser.tick():
                        self.process_message(event)

    return AltEnterDriver if usual is LinuxDriver else usual
