"""Law 12 by day: some calls of all clients with one fault each. bench/fuzz_harm.py has ten thousand.

On the code before this law (df57ae48) it was broken in these ways, each of which has tests of its own, too:
a refusal as too long made the gateway refuse all later requests (test_learned_limits), a server with a longer context
than before was never found out (there, too), a million tokens that a client asked for were folded at two hundred
thousand (there, too), with a locked store each request waited 30 s, with a full disk it was sent larger than the window
(test_full_disk and below), a result was cut on arrival in an empty window (test_hooks), a client whose gateway was gone
waited in silence (test_first_day), and a session that Gemini CLI resumed became several (test_gateway_compactions).
"""

import pytest

from harming import CLAUDES, ENDED, FAULTS, ROOMY, TIGHT, Harm, Trial, tried
from made_clients import CLIENTS


@pytest.mark.few(1)
@pytest.mark.parametrize("client", CLIENTS)
def test_what_works_without_clew_works_with_it(client: str) -> None:
    harm = Harm()
    number = list(CLIENTS).index(client)
    for n, window in enumerate((ROOMY, CLAUDES if client.startswith("claude") else TIGHT)):
        tried(Trial(client, number, window, FAULTS[(number + 5 * n) % len(FAULTS)], at=2 + number % 4), harm)
    assert harm.told == []
    assert harm.calls > 15


@pytest.mark.few(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_after_any_fault_the_next_request_is_what_it_would_have_been(fault: str) -> None:
    harm = Harm()
    tried(Trial("pi", 7, TIGHT, fault, at=3), harm)
    assert harm.told == []


def test_while_the_store_fails_what_was_learned_of_a_provider_counts() -> None:
    """Its count of tokens says how much is folded, and what it refused says how much may be sent."""
    harm = Harm()
    tried(Trial("qwen-code", 5050, TIGHT, "store locked", at=4), harm)
    assert harm.told == []


def test_a_store_that_was_locked_is_tried_again_by_the_next_request() -> None:
    """What was folded from memory alone is not what the log has, where it was folded more than once."""
    harm = Harm()
    tried(Trial("qwen-code", 143, TIGHT, "store locked", at=5), harm)
    assert harm.told == []


def test_after_a_restart_what_a_provider_counted_last_still_counts() -> None:
    """It counted more than its tokenizer explains: the rest is hidden in every request, and the log says how much."""
    harm = Harm()
    tried(Trial("qwen-code", 2035, TIGHT, ENDED, at=3), harm)
    assert harm.told == []
