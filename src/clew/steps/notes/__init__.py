"""Summaries that a model proposes and code checks: `Writer` asks, and what it returns is claims, not text."""
