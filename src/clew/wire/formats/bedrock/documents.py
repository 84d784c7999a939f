"""Documents in a history that came from another format: Converse takes few, each named, each beside some text."""

from dataclasses import replace as with_
from itertools import groupby

from clew.core.items import Item
from clew.wire.formats.media import Media

CONVERSE_DOCUMENTS = 5  # in a request


def with_documents(items: list[Item]) -> list[Item]:
    """Few documents, each under a name of its own and next to some text: Converse wants it so."""
    places = [i for i, item in enumerate(items) if item.wire is not None and "document" in item.wire]
    names: set[str] = set()
    for i in places:
        held = (items[i].wire or {})["document"]
        if i in places[:-CONVERSE_DOCUMENTS]:
            items[i] = Item("text", "user", Media("document", name=held["name"]).placeholder)
            continue
        n, name = 1, held["name"]
        while name in names:
            n += 1
            name = f"{held['name']} {n}"
        names.add(name)
        items[i] = with_(items[i], wire={"document": held | {"name": name}})
    said: list[Item] = []
    for _, turn in groupby(items, key=lambda item: item.role == "assistant"):
        said += (group := list(turn))
        shown = any("document" in (item.wire or {}) for item in group)
        if shown and not any(item.kind in ("text", "summary") for item in group):
            said.append(Item("text", "user", "[the document above]"))
    return said
