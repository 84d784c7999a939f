"""The reader test: can somebody who sees only what a method left of a conversation go on with the work?"""
