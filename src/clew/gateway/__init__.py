"""`clew serve`: a gateway between any client and its provider."""
