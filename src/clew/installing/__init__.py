"""Clients' own configuration: changed so that they talk to clew, and put back byte for byte."""
