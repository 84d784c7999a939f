"""What stands where nothing was said yet: what this is, and three things to try."""

from collections.abc import Mapping

from clew.chat.backend import ChatBackend

MODELS = "openai/NAME, anthropic/NAME or http://HOST/v1#NAME"
KEYS = {"openai/NAME": "OPENAI_API_KEY", "anthropic/NAME": "ANTHROPIC_API_KEY"}


def text(backend: ChatBackend, env: Mapping[str, str]) -> str:
    """What somebody who begins wants to know; without a model, how to get one."""
    folder = backend.places.shown(backend.folder)
    if backend.model:
        return f"""An agent that shows its window: how full it is, of what, what was compacted.
It reads in {folder}, and asks before it changes a file or runs a command.

Three things to try:
  What is in this folder?   ask anything; @ completes the name of a file
  !git status               run a command yourself: the agent hears of it
  /                         all that can be done, such as /window and /undo"""
    keys = "\n".join(
        f"  {name:<20} {key} is set" if env.get(key) else f"  {name:<20} needs {key}" for name, key in KEYS.items()
    )
    return f"""An agent that shows its window: how full it is, of what, what was compacted.
It works in {folder}, and asks before it changes a file or runs a command.
All that is said is kept in {backend.places.shown(backend.places.store())}.

No model is set. Three things to try:
  /model NAME        choose one, with one of the names below; it is saved
  clew chat --demo   look first, with no key: a script answers (/quit leaves)
  !ls                run a command here

{keys}
  http://HOST/v1#NAME  Ollama, llama-server and their like; no key"""
