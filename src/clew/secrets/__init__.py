"""What secrets look like, and text without them."""
