"""A model of Inspect's whose loop compacts what it sends, for tasks that use `generate_loop` and take no strategy."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    CompactionStrategy,
    GenerateConfig,
    Model,
    ModelOutput,
    compaction,
    execute_tools,
)


class CompactingModel(Model):
    """The model it is made of, with a strategy; one conversation is known by its first message."""

    def __init__(self, model: Model, strategy: CompactionStrategy) -> None:
        super().__init__(model.api, model.config, model.model_args)
        self._strategy = strategy
        self._handlers: dict[str | None, Any] = {}

    async def generate_loop(  # type: ignore[override]
        self,
        input: list[ChatMessage],
        tools: Sequence[Any] = (),
        config: GenerateConfig | None = None,
        **more: Any,
    ) -> tuple[list[ChatMessage], ModelOutput]:
        """As Inspect's own, but that each request is what the strategy leaves of the messages."""
        messages = copy(input)
        config = config or GenerateConfig()
        handler = self._handlers.get(messages[0].id)
        if handler is None:
            handler = self._handlers[messages[0].id] = compaction(self._strategy, messages[:1], tools, self)
        while True:
            sent, beside = await handler.compact_input(messages)
            if beside is not None:
                messages.append(beside)
            output = await self.generate(sent, tools, config=config, **more)
            await handler.record_output(sent, output)
            messages.append(output.message)
            if not output.message.tool_calls:
                return messages[len(input) :], output
            results, _ = await execute_tools(messages, tools, config.max_tool_output)
            messages.extend(results)
