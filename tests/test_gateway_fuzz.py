"""The gateway under requests and answers with something wrong in them; bench/fuzz_gateway.py has thousands."""

from typing import Any

import pytest

from clew.gateway.settings import GatewaySettings
from fuzzing_gateway import fuzz
from serving import serving


def test_whatever_is_wrong_with_a_request_or_its_answer() -> None:
    faults = fuzz(range(60))
    assert faults.told == []
    assert {"200", "400"} < faults.statuses.keys()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses/compact", {"model": "gpt-5", "input": "half of a pair: \ud800"}),
        ("/v1/responses", {"model": "gpt-5", "input": "hi", "tools": [{"type": "custom", "name": "a"}, "no tool"]}),
    ],
)
def test_what_thousands_of_requests_found(path: str, body: dict[str, Any]) -> None:
    with serving(settings=GatewaySettings(tools=True)) as served:
        for streamed in (False, True):
            got = served.ask(path, {**body, "stream": streamed})
            assert got.status < 500, got.raw
