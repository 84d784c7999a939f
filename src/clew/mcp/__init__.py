"""clew mcp: what was said, for agents that ask by the Model Context Protocol. `import mcp` is the SDK, not this."""
