"""The page: conversations in a browser, what they cost, and acts on them. Served beside the gateway."""
