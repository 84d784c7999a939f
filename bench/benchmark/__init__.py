"""How many needed facts survive per token: clew beside others, in one run. `facts.py` runs it."""
