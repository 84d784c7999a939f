"""What providers accept: the rules of each format, and which of them a body breaks."""
