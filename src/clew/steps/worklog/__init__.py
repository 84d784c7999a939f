"""The work log: a text by code, from which somebody who sees nothing else can go on with the work."""
