"""The model of an agent of LangChain as one that writes chapters."""

from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from clew.adapters.hosted import Hosted
from clew.adapters.langchain.messages import name_of, usage_of
from clew.catalog.usage import Spent, spent
from clew.core.threads import in_thread_of_its_own
from clew.steps.chapters.allowance import Allowance
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply

RUN = "clew chapter"  # the name under which LangChain's callbacks and tracing see a question


def written_by(model: BaseChatModel, allowance: Allowance) -> ByModel:
    """A model as an author. It is asked without the conversation before the question, which has all that it needs."""
    most = (model.profile or {}).get("max_input_tokens")
    return ByModel(Hosted(name_of(model), partial(_asked, model), most), allowance=allowance, follows=False)


async def _asked(model: BaseChatModel, prompt: Prompt) -> Reply:
    said = [*([SystemMessage(prompt.system)] if prompt.system else []), HumanMessage(prompt.text)]
    # Not `ainvoke`: its connections belong to the loop of the agent.
    answer = await in_thread_of_its_own(partial(model.invoke, said, {"run_name": RUN, "tags": ["clew"]}))
    assert isinstance(answer, AIMessage)
    usage = usage_of(answer)
    calls = tuple(call["name"] for call in answer.tool_calls)
    return Reply(str(answer.text), spent(usage) if usage else Spent(0), calls)
