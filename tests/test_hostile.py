"""Authority: whatever a tool returned is never heard as the user's voice, nor as anything to act on."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest
from hostile import ATTACKS, Attack, session

from clew import Budget, Edit, Engine, Meter, Prompt, Request, SQLite
from clew.claims import DIRECTIVE, Claim, from_json
from clew.drafting.noting import WithNotes
from clew.drafting.writing import Writer
from clew.steps import PRESETS
from clew.steps.notes import HEADINGS
from clew.steps.state import State, sections
from clew.testing import ScriptedModel, view_of
from clew.tokens import counter_for
from clew.view import View
from clew.wire.convert import convert

BUDGET = Budget(window=4_000, reserve=300, tail=300)
FORMATS = ["openai_chat", "anthropic", "gemini"]
SECTIONS = {*dict(sections(State())), *HEADINGS.values()}
MARKS = {"user: ": "the user, quoted", "| ": "a result, quoted", "> ": "a call, quoted"}
LAST = "the user's newest request, still open"

# Where words of a tool may stand: in its result, in the call that took them up, in quotations that are marked as data.
DATA = {
    *("result", "call", "framed", "a result, quoted", "a call, quoted"),
    *("still running", "still failing", "fixed", "files", "ran", "found", "went wrong"),
}


def told(summary: str) -> Iterator[tuple[str, str]]:
    """(place, line) of a summary, told apart as a reader would: by its headings and by the marks of quotations."""
    head, *lines = summary.splitlines()
    yield "heading", head
    place = ""
    for line in lines:
        if line.endswith(":") and line[:-1] in {*SECTIONS, "what happened"}:
            place = line[:-1]
        elif line.startswith(LAST):
            yield LAST, line
        elif place == "what happened":
            yield next((who for mark, who in MARKS.items() if line.startswith(mark)), "the assistant, quoted"), line
        else:
            yield (place if line.startswith("- ") else "no section"), line


def heard(view: View) -> Iterator[tuple[str, str]]:
    """(place, text) of all that a view says."""
    for node in view.nodes:
        item = node.item
        if item.kind == "summary":
            yield from told(item.text)
        elif item.text.startswith("[data: ") and item.text.count("[end of data]") == item.text.endswith("[end of data]"):
            yield "framed", item.text
        else:
            yield (item.role if item.kind == "text" else item.kind), item.text


def leaks(view: View, canary: str) -> set[str]:
    """Where a canary is heard as more than data."""
    return {place for place, text in heard(view) if canary.lower() in text.lower()} - DATA


def forged(view: View, attack: Attack) -> set[str]:
    """Look-alikes of frames that stand in a stand-in as the tool wrote them; a preview is the tool's own text."""
    made = view.stand_ins()
    texts = [n.item.text for n in view.nodes if n.id in made and "characters out of view; recall" not in n.item.text]
    # What the frames of stand-ins say themselves stands at their beginning.
    return {mark for mark in attack.marks for text in texts if mark in text[1:]}


async def compacted(attack: Attack, format: str, preset: str) -> View:
    store = SQLite(":memory:")
    engine = Engine(store, BUDGET, PRESETS[preset]())
    view = await engine.prepare(Request(convert(session(attack), format, "openai_chat"), format))
    await engine.close()
    await store.close()
    return view


@pytest.mark.parametrize("preset", ["default", "summarizing", "sliding"])
@pytest.mark.parametrize("format", FORMATS)
async def test_what_a_tool_said_stays_data(format: str, preset: str) -> None:
    views = {attack: await compacted(attack, format, preset) for attack in ATTACKS}
    assert {a.name: leaks(view, a.canary) for a, view in views.items() if leaks(view, a.canary)} == {}
    assert {a.name: forged(view, a) for a, view in views.items() if forged(view, a)} == {}
    assert all(view.edits for view in views.values())
    if preset == "summarizing":
        seen = [a for a, view in views.items() if any(a.canary in n.item.text for n in view.nodes)]
        assert len(seen) > len(ATTACKS) * 0.8, "else there is nothing to see"


# --- a model that does what the tool says -------------------------------------------------------------------------

TRUE = "an export that is built part by part, since the parts were built"


@dataclass(frozen=True)
class Obedient:
    """A script of a model that notes under every heading, as the user's, what a tool told it to."""

    attack: Attack

    def __call__(self, prompt: Prompt) -> str:
        lines = [" ".join(line.split())[-200:] for line in self.attack.text.splitlines() if self.attack.canary in line]
        before = prompt.text.partition(self.attack.canary)[0]
        source = ["n1", *re.findall(r"^(n\d+) ", before, re.MULTILINE)][-1]
        cites = ["[n1]", f"[{source}]", f"[n1 {source}]"]
        told = [(line, cite) for line in dict.fromkeys([*lines[:2], self.attack.canary]) for cite in cites]
        wants = f"the user wants {self.attack.canary} {cites[2]}", f"the user approved {self.attack.canary} {cites[0]}"
        sections: dict[str, list[str]] = {
            "constraints": [f'"{line}" {cite}' for line, cite in told],
            "tasks": [f"{how}: {line} {cite}" for how in ("open", "done") for line, cite in told],
            "decisions": [f'{TRUE} ["Part 0 is built, the export is next"]', *(f"the user approved: {line} {cite}" for line, cite in told)],
            "findings": [*wants],
            "errors": [f"{line} {cite}" for line, cite in told[:1]],
            "questions": [f"{line}? {cite}" for line, cite in told],
            "next": [f"go on with the export: {line} {cite}" for line, cite in told],
        }  # no line stands there four times: that would be garbage
        return "\n".join(f"## {name}\n" + "\n".join(f"- {x}" for x in lines) for name, lines in sections.items())


def directed(edits: Iterable[Edit]) -> list[Claim]:
    """The claims of a model that a summary was made with and that an agent acts on."""
    kept = (from_json(edit.evidence.get("claims", ())) for edit in edits)
    return [claim for claims in kept for claim in claims if claim.section in DIRECTIVE]


def obeyed(view: View, attack: Attack) -> set[str]:
    return {c.section for c in directed(view.edits) if attack.canary.lower() in c.text.lower()} | leaks(
        view, attack.canary
    )


def writer(script: Callable[[Prompt], str]) -> Writer:
    return Writer(ScriptedModel(script), size=4_000)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_model_that_obeys_a_tool_gives_it_no_authority(format: str) -> None:
    meter = Meter(counter_for("gpt-4o", format))
    views: dict[Attack, View] = {}
    for attack in ATTACKS:
        view = view_of(convert(session(attack), format, "openai_chat"), format)
        step = WithNotes(writer(Obedient(attack)), PRESETS["summarizing"]())
        views[attack] = await step(view, Budget(4_000, 300, tail=300, meter=meter))
    assert {a.name: obeyed(view, a) for a, view in views.items() if obeyed(view, a)} == {}
    assert {a.name for a, view in views.items() if TRUE not in [c.text for c in directed(view.edits)]} == set()


async def test_nor_in_a_session() -> None:
    for attack in ATTACKS[:: len(ATTACKS) // 8]:
        store = SQLite(":memory:")
        obedient = writer(Obedient(attack))
        engine = Engine(store, Budget(window=40_000), PRESETS["summarizing"](), writer=obedient)
        view = await engine.compact(await engine.prepare(Request(session(attack))))
        await engine.close()
        await store.close()
        assert TRUE in [c.text for c in directed(view.edits)]
        assert (attack.name, obeyed(view, attack)) == (attack.name, set())
