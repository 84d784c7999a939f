"""An answer of a provider as it comes: its events, what each says, and several answers as one stream."""
