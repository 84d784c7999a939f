"""One process of a user that does clew's work for all clients: what they start only passes words on to it."""
