"""Text: search, excerpts, frames, what programs wrap around it."""
