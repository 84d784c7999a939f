"""What the plugins of coding agents ask: which messages to send, how to preview a result, how to sum up."""
