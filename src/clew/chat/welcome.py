"""The first screen of somebody who has set up nothing."""

from collections.abc import Mapping

from clew.chat.desk import Absent, Desk

MODELS = "openai/NAME, anthropic/NAME, http://HOST/v1#NAME, or local"
KEYS = {"openai/NAME": "OPENAI_API_KEY", "anthropic/NAME": "ANTHROPIC_API_KEY"}


def text(desk: Desk, env: Mapping[str, str]) -> str:
    """What is there, what is missing, and the three keys that one must know."""
    speaker = desk.agent.speaker
    if isinstance(speaker, Absent):
        now = f"No model is set, and the local one is not here either: {speaker.why}."
    else:
        now = (
            f"No model is set, so the local one answers: {speaker.name}, in this process, with no key. It is small: it "
            "chats, and calls no tools. If its weights are not here yet: clew model fetch"
        )
    keys = "\n".join(
        f"  {name:<20}{key} is set" if env.get(key) else f"  {name:<20}needs {key}" for name, key in KEYS.items()
    )
    return f"""This is an agent that shows its window: how full it is, of what, and what was compacted.

{now}

To talk to another model, type /model and one of

{keys}
  http://HOST/v1#NAME a server of your own that speaks OpenAI's API

It is saved, and next time this page does not come up. The agent reads and searches in {desk.folder};
before it changes a file or runs a command, it shows you what it would do and asks.

Ctrl+P has all commands, F1 help, Ctrl+Q leaves. All that is said is kept in {desk.places.store().parent}."""
