"""Conversations of one scope that differ in their words alone, and whether any of them gets a word of another."""
