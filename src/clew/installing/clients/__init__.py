"""What makes clew's tools and hooks known to each client; a module a client."""
