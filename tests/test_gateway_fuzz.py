"""The gateway under requests and answers with something wrong in them; bench/fuzz_gateway.py has thousands."""

from fuzzing_gateway import fuzz


def test_whatever_is_wrong_with_a_request_or_its_answer() -> None:
    faults = fuzz(range(100))
    assert faults.told == []
    assert {"200", "400"} < faults.statuses.keys()
