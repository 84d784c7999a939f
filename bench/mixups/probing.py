"""What a conversation can reach, by search, recall, MCP, a plugin and an export; and whether its own past can be."""

from clew import Engine
from clew.errors import ClewError
from clew.mcp.answers import Answers
from clew.mcp.brief import brief, passage
from clew.mcp.reach import Reach
from clew.plugins.conversations import PluginConversations
from clew.sessions.export_log import export
from mixups.conversations import SUMMED_UP, Conversation
from mixups.judging import Judge
from mixups.words import ASKED
from mixups.world import World

MOST_RECALLED = 3
MOST_SOUGHT = 3
SIZE = 8_000  # characters of an answer


class Prober:
    """Asks all that may be asked of one conversation."""

    def __init__(self, world: World, judge: Judge) -> None:
        self.world, self.judge = world, judge

    async def probe(self, whose: Conversation, how: int) -> None:
        """One or two of them, as a number says."""
        if not self.world.is_there(whose):
            return
        engine = self.world.engines[how % len(self.world.engines)]
        match how % 20:
            case 0:
                await self._mcp(whose, engine)
            case 1:
                await self._plugin(whose, engine)
            case 2:
                await self._export(whose, engine)
            case 3 | 4 | 5 | 6:
                await self._recall(whose, engine, how)
            case _:
                await self._search(whose, engine, how)
        await self.own_past(whose, engine, how)

    async def _search(self, whose: Conversation, engine: Engine, how: int) -> None:
        asked = f"{ASKED} {' '.join(sorted(whose.words)[how % 7 :][:2])}"
        if how % 3:
            text = str(await engine.find(whose.scope, asked, whose.branch, 50))
        else:
            text = await engine.answer(whose.scope, asked, whose.branch, SIZE)
        self.world.tally.counts["searches"] += 1
        await self.judge.told(whose, "search", text)

    async def _recall(self, whose: Conversation, engine: Engine, how: int) -> None:
        """What it was offered, and what others were."""
        others = [id for other in self.world.known.values() if other is not whose for id in other.seen_ids]
        ids = [*whose.seen_ids[how % 5 :][:MOST_RECALLED], *others[how % (len(others) or 1) :][:1]]
        for id in ids:
            self.world.tally.counts["recalls"] += 1
            try:
                nodes = await engine.recall(whose.scope, id, whose.branch)
            except ClewError:
                continue
            await self.judge.told(whose, "recall", "\n".join(node.item.text for node in nodes))

    async def _mcp(self, whose: Conversation, engine: Engine) -> None:
        reach = Reach(engine, whose.scope, None, whose.branch)
        answers, count = Answers(reach, lambda: ""), self.world.tally.counts
        count["asked by MCP"] += 1
        try:
            one = await reach.one()
            for text in (
                await answers.search(ASKED, "", SIZE),
                await answers.timeline("", None, SIZE),
                await answers.lost("", SIZE),
                await brief(answers, one, SIZE),
                await passage(reach, await one.session(), SIZE),
            ):
                await self.judge.told(whose, "mcp", text)
        except ClewError:
            count["MCP had nothing"] += 1

    async def _plugin(self, whose: Conversation, engine: Engine) -> None:
        if whose.name is None or whose.shares_name or len(whose.name) > 200 or whose.parent:
            return
        self.world.tally.counts["asked by a plugin"] += 1
        asked = {"session": whose.name, "name": "search_history", "given": {"query": ASKED}}
        told = await PluginConversations("pi", engine, {}, whose.scope).tool(asked)
        await self.judge.told(whose, "plugin", str(told))

    async def _export(self, whose: Conversation, engine: Engine) -> None:
        self.world.tally.counts["exports"] += 1
        lines = [line async for line in export(engine.store, whose.scope, [whose.branch])]
        for line in lines:
            door = "export: system prompt" if line.startswith(b'{"frame"') else "export"
            await self.judge.told(whose, door, line.decode())

    async def own_past(self, whose: Conversation, engine: Engine, how: int) -> None:
        """Whether words are found that its client has no longer, or has still."""
        tally, seen = self.world.tally, whose.visible()
        lost = {"answered"} if not whose.name and not whose.is_summed_up() else set()
        gone = sorted(w for w, why in whose.gone.items() if w not in seen and why.split(",")[0] not in lost)
        here = sorted(whose.logged & seen)
        sought = [(word, whose.gone[word]) for word in gone[how % 11 :][:MOST_SOUGHT]]
        sought += [(word, "still with its client") for word in here[how % 5 :][:1]] if how % 4 == 0 else []
        for word, why in sought:
            nodes = await engine.search(whose.scope, f"password {word}", whose.branch, 50)
            texts = [node.item.text for node in nodes]
            tally.counts["searches"] += 1
            tally.sought[why] += 1
            tally.reached[why] += any(word in text and SUMMED_UP not in text for text in texts)
            await self.judge.told(whose, "search", "\n".join(texts))
