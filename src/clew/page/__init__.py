"""The page: conversations to look at in a browser, what they cost, and the ways back. Served beside the gateway."""
