"""What secrets look like, and text without them."""

from clew.secrets.masking import Policy, find, kinds_in, masked, masked_frame, masked_item
from clew.secrets.matching import Secret

__all__ = ["Policy", "Secret", "find", "kinds_in", "masked", "masked_frame", "masked_item"]
