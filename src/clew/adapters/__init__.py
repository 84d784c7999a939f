"""Clew inside software that people already use: one file a host, each thin over `Thread`."""
