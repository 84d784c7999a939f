"""What secrets look like, and text without them."""

from clew.secrets.masking import Policy, Secret, find, kinds_in, masked, masked_frame, masked_item

__all__ = ["Policy", "Secret", "find", "kinds_in", "masked", "masked_frame", "masked_item"]
