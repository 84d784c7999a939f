"""The first screen of somebody who has set up nothing."""

from collections.abc import Mapping

from clew.chat.backend import ChatBackend

MODELS = "openai/NAME, anthropic/NAME or http://HOST/v1#NAME"
KEYS = {"openai/NAME": "OPENAI_API_KEY", "anthropic/NAME": "ANTHROPIC_API_KEY"}


def text(backend: ChatBackend, env: Mapping[str, str]) -> str:
    """What is there, what is missing, and the three keys that one must know."""
    keys = "\n".join(
        f"  {name:<20} {key} is set" if env.get(key) else f"  {name:<20} needs {key}" for name, key in KEYS.items()
    )
    return f"""An agent that shows its window: how full, of what, what was compacted.

No model is set. Type /model and one of these; it is saved.
To look first, with no key: clew chat --demo
{keys}
  http://HOST/v1#NAME  Ollama, llama-server and their like; no key

It works in {backend.places.shown(backend.folder)}.
Before it changes a file or runs a command, it shows you what, and asks.
All that is said is kept in {backend.places.shown(backend.places.store())}.

Ctrl+P commands · F1 help · Esc cancels · Ctrl+Q leaves"""
