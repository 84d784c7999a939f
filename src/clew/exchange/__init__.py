"""A request of a host on its way to a provider and back, fitted to the window."""
