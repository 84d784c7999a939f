"""Turns of a conversation."""

from typing import Any

from frameworks.reading import TURNS
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types


def runner(agent: Any, *plugins: Any, sessions: Any = None, **given: Any) -> Runner:
    app = App(name="reading", root_agent=agent, plugins=list(plugins), **given)
    return Runner(app=app, session_service=sessions or InMemorySessionService(), auto_create_session=True)


async def say(running: Runner, text: str, session: str = "port", config: RunConfig | None = None) -> str:
    """What an agent answers in the end."""
    said = types.Content(role="user", parts=[types.Part(text=text)])
    answer = ""
    async for event in running.run_async(user_id="me", session_id=session, new_message=said, run_config=config):
        if event.is_final_response() and event.content and event.content.parts:
            answer = "".join(part.text or "" for part in event.content.parts)
    return answer


async def talk(running: Runner, turns: int = TURNS, config: RunConfig | None = None) -> None:
    for _ in range(turns):
        await say(running, "Read the next two parts.", config=config)
