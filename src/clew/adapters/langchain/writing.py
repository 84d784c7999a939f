"""The model of an agent of LangChain as one that writes chapters."""

from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from clew.adapters.hosted import CHAPTER, Hosted
from clew.adapters.langchain.messages import name_of, usage_of
from clew.catalog.usage import Spent, spent
from clew.core.threads import in_thread_of_its_own
from clew.steps.chapters.model import Prompt, Reply


def hosted(model: BaseChatModel) -> Hosted:
    """A model of LangChain as one that writes summaries for clew."""
    return Hosted(name_of(model), partial(_asked, model), (model.profile or {}).get("max_input_tokens"))


async def _asked(model: BaseChatModel, prompt: Prompt) -> Reply:
    said = [*([SystemMessage(prompt.system)] if prompt.system else []), HumanMessage(prompt.text)]
    # Not `ainvoke`: its connections belong to the loop of the agent.
    answer = await in_thread_of_its_own(partial(model.invoke, said, {"run_name": CHAPTER, "tags": ["clew"]}))
    assert isinstance(answer, AIMessage)
    usage = usage_of(answer)
    calls = tuple(call["name"] for call in answer.tool_calls)
    return Reply(str(answer.text), spent(usage) if usage else Spent(0), calls)
