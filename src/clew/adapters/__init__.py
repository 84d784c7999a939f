"""Clew inside software that people already use: a folder a host, all over `exchange.Thread`."""
