"""The first screen of somebody who has set up nothing."""

from collections.abc import Mapping

from clew.chat.desk import Absent, Desk

MODELS = "openai/NAME, anthropic/NAME, http://HOST/v1#NAME, or local"
KEYS = {"openai/NAME": "OPENAI_API_KEY", "anthropic/NAME": "ANTHROPIC_API_KEY"}


def text(desk: Desk, env: Mapping[str, str]) -> str:
    """What is there, what is missing, and the three keys that one must know."""
    speaker = desk.agent.speaker
    if isinstance(speaker, Absent):
        now = f"No model is set, and the local one is not here: {speaker.why}."
    else:
        now = (
            f"No model is set, so the local one answers: {speaker.name}, in this process, with no key. "
            "It is small: it chats, and calls no tools. It needs weights: clew model fetch."
        )
    keys = "\n".join(
        f"  {name:<20} {key} is set" if env.get(key) else f"  {name:<20} needs {key}" for name, key in KEYS.items()
    )
    return f"""An agent that shows its window: how full, of what, what was compacted.

{now}

To talk to another model, type /model and one of these; it is saved.
{keys}
  http://HOST/v1#NAME  a server that speaks OpenAI's API

It works in {desk.places.shown(desk.folder)}.
Before it changes a file or runs a command, it shows you what, and asks.
All that is said is kept in {desk.places.shown(desk.places.store())}.

Ctrl+P commands · F1 help · Esc cancels · Ctrl+Q leaves"""
