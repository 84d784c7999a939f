"""Streams of Responses as one."""

from clew.wire.formats.plain import Block
from clew.wire.streams.joined import OPENINGS, HeardEvent, IsOurs, JoinedStream, unoffered


class ResponsesStream(JoinedStream):
    """Of Responses: items have an index, events a number, and the end says all once more."""

    def __init__(self, is_ours: IsOurs) -> None:
        super().__init__(is_ours)
        self._places: dict[int, int | None] = {}
        self._begun = 0  # items that are told
        self._id = ""
        self._number: int | None = None  # of the next event
        self._earlier: list[Block] = []  # items of earlier answers that were told
        self._items: list[Block] = []  # and of this one

    def _passes(self, event: HeardEvent) -> bool:
        said = event.block or {}
        if said.get("type") != "response.output_text.delta" or self._number is None:
            return False
        place = said["output_index"]
        if said.get("sequence_number") != self._number or self._places.get(place, -1) != place:
            return False
        self._number += 1
        return True

    def _ends(self, said: Block) -> bool:
        return self._is_last(said)

    def _is_last(self, said: Block) -> bool:
        return said.get("type") in ("response.completed", "response.incomplete")

    def _shows(self, told: Block) -> bool:
        return told.get("type") not in OPENINGS

    def _passed_on(self, event: HeardEvent) -> Block | None:
        said = event.block or {}
        if said.get("type") in OPENINGS:
            if self._later:
                return None
            self._id = str(said["response"].get("id"))
            response = unoffered(said["response"], self._is_ours)
            said = said if response is said["response"] else {**said, "response": response}
        if "output_index" in said:
            index, item = said["output_index"], said.get("item") or {}
            if said.get("type") == "response.output_item.added":
                ours = self._is_our_call(item)
                self._places[index] = None if ours else self._begun
                self._begun += not ours
            place = self._places.get(index, index)
            if place is None:
                return None
            if said.get("type") == "response.output_item.done":
                self._items.append(item)
            said = said if place == index else {**said, "output_index": place}
        return self._numbered(said)

    def _is_our_call(self, item: Block) -> bool:
        return item.get("type") in ("function_call", "custom_tool_call") and self._is_ours(str(item.get("name")))

    def _numbered(self, said: Block) -> Block:
        if "sequence_number" not in said:
            return said
        number = said["sequence_number"] if self._number is None else self._number
        self._number = number + 1
        return said if said["sequence_number"] == number else {**said, "sequence_number": number}

    def _ended(self, event: HeardEvent, muted: bool) -> Block | None:
        said = event.block or {}
        response = unoffered(said.get("response") or {}, self._is_ours)
        own = [item for item in response.get("output") or self._items if not self._is_our_call(item)]
        output = [*self._earlier, *own]
        if self._later:  # it goes by the name that it began with
            self.alias = self._id, str(response.get("id"))
            response = {**response, "id": self._id}
        if self._later or output != response.get("output") or response is not said.get("response"):
            said = {**said, "response": {**response, "output": output}}
        return self._numbered(said)

    def _reset(self) -> None:
        self._number = self._number if self._later else None
        self._earlier += self._items
        self._items, self._places = [], {}
