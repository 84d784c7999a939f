"""Calls of a model: the tool is found, the call is planned, permission is asked, and whatever comes of it is a text."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from clew.agent.tools.tool import Arguments, Permission, Tool
from clew.core import rawjson
from clew.errors import BadRequest, ToolError
from clew.wire.formats.tools import Outcome

PermissionRule = Literal["allow", "ask", "deny"]
AskUser = Callable[[Tool, Arguments, str], Awaitable[bool]]  # the tool, its arguments, what it would do


@dataclass(frozen=True, slots=True)
class Permissions:
    """What tools may do; where somebody would have to be asked and nobody is there, they may not."""

    read: PermissionRule = "allow"
    write: PermissionRule = "ask"
    run: PermissionRule = "ask"
    ask: AskUser | None = None

    def rule(self, permission: Permission) -> PermissionRule:
        """What holds for tools that want this."""
        rules: Mapping[Permission, PermissionRule] = {"read": self.read, "write": self.write, "run": self.run}
        return rules[permission]


class Toolbox:
    """Tools, and what they may do."""

    def __init__(self, tools: Iterable[Tool], permissions: Permissions) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._permissions = permissions

    async def call(self, name: str, arguments: str) -> Outcome:
        """Carry out a call as a model makes it, its arguments JSON; only being cancelled raises."""
        try:
            tool = self._found(name)
            return Outcome(await self._done(tool, _parsed(name, arguments)))
        except ToolError as error:
            return Outcome(str(error), failed=True)

    def _found(self, name: str) -> Tool:
        if name not in self.tools:
            raise ToolError(f"there is no tool {name!r}: there are {', '.join(self.tools)}")
        return self.tools[name]

    async def _done(self, tool: Tool, arguments: Arguments) -> str:
        rule = self._rule(tool.name, tool.asks)
        plan = await tool.plan(arguments)
        if plan.wants is not None:
            tool = replace(tool, asks=plan.wants)
            also = self._rule(f"{tool.name} of what others run unasked", tool.asks)
            rule = "ask" if "ask" in (rule, also) else "allow"
        ask = self._permissions.ask
        if rule == "ask" and ask is not None and not await ask(tool, arguments, plan.preview):
            raise ToolError(f"{tool.name} was not carried out: the user said no")
        return await plan.act()

    def _rule(self, name: str, permission: Permission) -> PermissionRule:
        """Whether somebody is to be asked for a permission; raises where it cannot be had."""
        rule = self._permissions.rule(permission)
        if rule == "deny":
            raise ToolError(f"{name} was not carried out: to {permission} is not permitted here")
        if rule == "ask" and self._permissions.ask is None:
            raise ToolError(f"{name} was not carried out: nobody is here to permit it")
        return rule


def _parsed(name: str, arguments: str) -> Arguments:
    try:
        parsed: Arguments = rawjson.loads(arguments) if arguments.strip() else {}
    except BadRequest as error:
        raise ToolError(f"{name}: the arguments are {error}") from None
    return parsed
