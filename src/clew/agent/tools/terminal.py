"""Text from elsewhere, for a terminal: nothing in it moves the cursor, hides or turns round what is there."""

from unicodedata import category

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class _Legible(dict[int, str]):
    """For each character itself, or a sign that there is one which cannot be seen."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = "�" if category(chr(code)) in _HIDDEN else chr(code)
        return shown


_SHOWN = _Legible({ord("\n"): "\n", ord("\t"): "\t"})


def shown(text: str) -> str:
    """The lines of a text, with a replacement character for each that a terminal would obey or not show."""
    return text.replace("\r\n", "\n").translate(_SHOWN)
