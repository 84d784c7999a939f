"""Who asks what was asked before gets the answer, and not questions that sound alike."""

from typing import Any, NamedTuple

import pytest

from clew import Budget, Engine, Request, SQLite
from clew.engine.settings import Settings

PADDING = "We talk of the weather, of trains and of the view from the window for a while. " * 6


class Kind(NamedTuple):
    """A kind of conversation: its questions with their answers, and one of them asked again in other words."""

    pairs: list[tuple[str, str]]
    again: str
    wanted: str  # stands in the right answer alone
    tool: bool = False  # the assistant looks it up
    beside: bool = True  # it is brought without being looked for: not where the question itself is still in view


HOTEL = [
    (f"Could you tell me which floor the suite {name} is on and what it looks at?", f"It is on level {n + 2}: {sight}.")
    for n, (name, sight) in enumerate(
        [
            ("Amaryllis", "the courtyard with the plane trees"),
            ("Bergamot", "the funicular"),
            ("Calendula", "the fish market"),
            ("Dahlia", "a blank wall, sadly"),
            ("Echinacea", "the observatory dome"),
            ("Foxglove", "the tram depot"),
        ]
    )
]
PHARMACY = [
    (f"Wie oft am Tag soll Frau {name} das Mittel aus der blauen Packung nehmen?", f"{how}, hat der Arzt geschrieben.")
    for name, how in [
        ("Oberhuber", "Dreimal, immer nach dem Essen"),
        ("Prantl", "Nur vor dem Schlafengehen"),
        ("Quast", "Alle acht Stunden, auch nachts"),
        ("Riedl", "Gar nicht mehr, es ist abgesetzt"),
        ("Stangl", "Einmal, nüchtern um sieben"),
    ]
]
LIBRARY = [
    (f"Où se trouve maintenant le manuscrit de {name}, et qui l'a emprunté ?", f"Chez {who}, jusqu'au {day}.")
    for name, who, day in [
        ("Valmondois", "l'archiviste de Sens", "3 mars"),
        ("Trémorel", "madame Kerguelen", "19 avril"),
        ("Brocéliande", "personne : il est en restauration", "solstice"),
        ("Ouessant", "le musée de la Marine", "2 juin"),
    ]
]
OBSERVATORY = [
    (f"What did the spectrograph say about star {name}?", f"Its {what}.")
    for name, what in [
        ("HR-5501", "sodium lines are doubled, so it is a binary"),
        ("HR-6130", "iron abundance is a tenth of the sun's"),
        ("HR-7042", "radial velocity changed by nine kilometres a second"),
        ("HR-8219", "lithium is missing"),
    ]
]
ORDERS = [
    (f"注文番号 K-{n} の配達はいつになりますか？", f"{day}の午前中に届きます。")
    for n, day in [(4410, "木曜日"), (4427, "来週の月曜日"), (4483, "十二日"), (4496, "祝日明け")]
]
KINDS = {
    "hotel": Kind(HOTEL, "Sorry, the suite Echinacea: which level was it, and with what sight?", "observatory"),
    "hotel, another": Kind(HOTEL, "And once more, please: what can be seen from suite Calendula?", "fish market"),
    "pharmacy": Kind(PHARMACY, "Noch einmal: wie oft nimmt Frau Riedl das Mittel?", "abgesetzt"),
    "pharmacy, another": Kind(PHARMACY, "Wie war das bei Frau Stangl mit der blauen Packung?", "nüchtern"),
    "library": Kind(LIBRARY, "Le manuscrit de Trémorel, qui l'a déjà emprunté ?", "Kerguelen"),
    "observatory": Kind(
        OBSERVATORY, "Remind me what the spectrograph told us of HR-7042?", "radial velocity", tool=True
    ),
    "observatory, another": Kind(OBSERVATORY, "Is star HR-5501 a single one?", "sodium", True, False),
    "orders": Kind(ORDERS, "注文番号 K-4427 の配達日をもう一度教えてください。", "来週の月曜日"),
}


def history(kind: Kind) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "system", "content": "You help."}]
    for n, (question, answer) in enumerate(kind.pairs):
        said.append({"role": "user", "content": question})
        for k in range(3 if kind.tool else 0):
            call = {
                "id": f"c{n}-{k}",
                "type": "function",
                "function": {"name": "look", "arguments": f'{{"page": {k}}}'},
            }
            said.append({"role": "assistant", "content": "Let me see.", "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": f"c{n}-{k}", "content": f"page {k}: {PADDING}"})
        said.append({"role": "assistant", "content": answer})
        said.append({"role": "user", "content": f"Fine. {PADDING}"})
        said.append({"role": "assistant", "content": "Indeed."})
    for n in range(38):  # which takes the place of all of it
        said.append({"role": "user", "content": f"Now page {n} of the diary. {PADDING}"})
        said.append({"role": "assistant", "content": f"I have read page {n}. {PADDING}"})
    return said


@pytest.mark.few(1)
@pytest.mark.parametrize("name", KINDS)
async def test_a_question_brings_the_answer_that_it_got(name: str) -> None:
    kind = KINDS[name]
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=8_000), Settings(expand=True))
    said = history(kind)
    for end in range(2, len(said)):  # turn by turn, as a host sends it
        if said[end - 1]["role"] == "user":
            await engine.prepare(Request({"model": "gpt-4o", "messages": said[:end]}))
    view = await engine.prepare(
        Request({"model": "gpt-4o", "messages": [*said, {"role": "user", "content": kind.again}]})
    )
    branch = view.branch
    [first, *_] = await engine.search("default", kind.again, branch)
    found = await engine.answer("default", kind.again, branch)
    await store.close()
    assert kind.wanted in first.item.text
    others = [answer for _, answer in kind.pairs if kind.wanted not in answer]
    assert kind.wanted in found
    assert all(found.index(kind.wanted) < found.index(other) for other in others if other in found)
    assert not kind.beside or kind.wanted in "\n".join(n.item.text for n in view.nodes)
