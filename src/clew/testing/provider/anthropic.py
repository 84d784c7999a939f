"""What Anthropic refuses."""

from collections.abc import Mapping

from clew.testing.provider.answers import Answer
from clew.testing.provider.faults import ProviderFault, Refusals, room_in, wait
from clew.wire.formats.anthropic.compaction import COMPACT_BETA, asks_for_block, signed_blocks
from clew.wire.rules.binding import BETA
from clew.wire.rules.check import Broken
from clew.wire.streams.writing import ProviderBody

_WORDS: Mapping[int, tuple[str, str]] = {
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: {model}"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: (
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute. For details, "
        "refer to: https://docs.claude.com/en/api/rate-limits.",
    ),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out while processing."),
    529: ("overloaded_error", "Overloaded"),
}


def anthropic(fault: ProviderFault, request: str) -> ProviderBody:
    """The shape of Anthropic's errors; `request` is the id of what failed."""
    return {"type": "error", "error": {"type": fault.kind, "message": fault.message}, "request_id": request}


class MessagesRefusals(Refusals):
    """What Anthropic says; its errors have neither code nor param."""

    unreadable = "The request body is not valid JSON"

    def words(self, status: int) -> tuple[str, str | None, str]:
        unknown = "invalid_request_error" if status < 500 else "api_error", super().words(status)[2]
        kind, words = _WORDS.get(status, unknown)
        return kind, None, words

    def lacking(self, body: ProviderBody, headers: Mapping[str, str], counts: bool) -> ProviderFault | None:
        betas = headers.get("anthropic-beta", "")
        if "anthropic-version" not in headers:
            return self.fault(400, words="anthropic-version: header is required")
        if _binding(body) and BETA not in betas:
            words = f"thinking.block_binding: That setting requires the `{BETA}` value in the `anthropic-beta` header."
            return self.fault(400, words=words)
        if (asks_for_block(body) or signed_blocks(body)) and COMPACT_BETA not in betas:
            return self.fault(400, words=f"compaction: requires anthropic-beta: {COMPACT_BETA}")
        needs = ("model",) if counts else ("model", "max_tokens")
        lacks = [key for key in needs if body.get(key) is None]
        return self.fault(400, words=f"{lacks[0]}: Field required") if lacks else None

    def broken(self, found: Broken) -> ProviderFault:
        return self.fault(400, words=f"{found.where}: {found.why}")

    def too_long(self, body: ProviderBody, asked: int, window: int) -> ProviderFault | None:
        room = room_in(body)
        if asked + room <= window:
            return None
        both = f"input length and `max_tokens` exceed context limit: {asked} + {room} > {window}, decrease input length"
        alone = f"prompt is too long: {asked} tokens > {window} maximum"
        return self.fault(400, words=alone if asked > window else f"{both} or `max_tokens` and try again")

    def written(self, fault: ProviderFault, request: str, answer: Answer) -> ProviderBody:
        return anthropic(fault, request)

    def headers(self, answer: Answer, request: str) -> dict[str, str]:
        seconds = wait(answer)
        return {"request-id": request} | ({} if seconds is None else {"retry-after": f"{seconds:g}"})

    def listed(self, entries: Mapping[str, ProviderBody]) -> ProviderBody:
        names: list[str | None] = [*entries] or [None]
        return {"data": list(entries.values()), "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def entry(self, name: str, window: int) -> ProviderBody:
        made = {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
        return {**made, "lifecycle": "active", "max_input_tokens": window}


def _binding(body: ProviderBody) -> bool:
    thinking = body.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("block_binding") is not None
