"""What a call costs."""

from clew.catalog import Prices
from clew.catalog.usage import Spent

_MILLION = 1_000_000


def cost(prices: Prices, spent: Spent) -> float:
    """US dollars for the tokens of one call; the size of its prompt decides which prices apply."""
    for above, dearer in sorted(prices.tiers, key=lambda tier: tier[0]):
        if spent.input > above:
            prices = dearer
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    plain = max(0, spent.input - spent.cache_read - spent.cache_write)
    total = plain * prices.input + spent.cache_read * read + spent.cache_write * written + spent.output * prices.output
    return total / _MILLION
