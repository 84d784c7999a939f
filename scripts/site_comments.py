"""For the reference: the comment behind a field is what is said of it."""

from typing import Any

import griffe


class FieldComments(griffe.Extension):  # type: ignore[misc]
    """Takes `tail: int = 20_000  # tokens at the end that stay` for the docstring of `tail`."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **given: Any) -> None:
        """Called for each attribute that is found."""
        if attr.docstring or attr.lineno is None:
            return
        line = attr.lines_collection[attr.filepath][attr.lineno - 1]
        _, mark, said = line.partition("  # ")
        if mark and not said.startswith(("noqa", "type:")):
            attr.docstring = griffe.Docstring(f"{said[0].upper()}{said[1:]}.", parent=attr)
