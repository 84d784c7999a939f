"""Signed thinking is bound to what stood before it: Claude's newer models check that when it comes back.

From platform.claude.com/docs/en/build-with-claude/preserved-thinking and its pages: a block is bound to `system`,
`tools` and all messages before it, cache marks apart. Where one of them changed since, or a thinking block between
others is missing, the block and all later ones are refused, or dropped where the request says so. The oldest blocks may
be left out, and a turn may be sent without any: these models think adaptively, and ask for none at its beginning.
A `compaction` block that the API wrote on demand stands for what it was made of: thinking in messages that follow
those directly, unchanged and in the same frame, stays bound as it was (its page "Compaction and preserved thinking").
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from clew.core import rawjson
from clew.core.items import Frame, canonical
from clew.errors import BadRequest
from clew.wire.rules.turns import Findings, WireBody, blocks, messages, turns, within

BETA = "thinking-binding-controls-2026-08-01"  # the header value under which a request may say what shall be done
DROP = "drop_block"
BEHAVIOURS = ("error", DROP)
THINKING = ("thinking", "redacted_thinking")

# From Fable 5.1 on, in every family; a date after the major version is no minor one.
_CLAUDE = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?(?!\d)")
_FORMATS = ("anthropic", "bedrock")
_OURS = b"clew strict provider:"  # how a signature begins that `check` can read
_BLOCK = b"clew strict provider, compaction:"  # and that of a block which stands for messages


def binds(format: str, model: str) -> bool:
    """Whether the thinking of a model is bound to what stands before it."""
    found = _CLAUDE.search(model.lower()) if format in _FORMATS else None
    return found is not None and (int(found[1]), int(found[2] or 0)) > (5, 0)


def is_refused(frame: Frame, model: str = "") -> bool:
    """Whether thinking that is bound to something else would be refused, not dropped by the provider itself."""
    more = frame.body.get("additionalModelRequestFields")
    behaviour = _behaviour((more if isinstance(more, Mapping) else frame.body).get("thinking"))
    return (behaviour is not None or binds(frame.format, model or frame.model)) and behaviour != DROP


def binds_alike(one: Frame, other: Frame) -> bool:
    """Whether thinking that is bound to one frame is bound to the other."""
    if one is other:
        return True
    old, new = _bound_to(one), _bound_to(other)
    return rawjson.dumps(old) == rawjson.dumps(new) or canonical(old) == canonical(new)


def _bound_to(frame: Frame) -> list[Any]:
    keys = ("system", "toolConfig") if frame.format == "bedrock" else ("system", "tools")
    return [_plain(frame.body.get(key)) for key in keys]


def signature(body: WireBody) -> str:
    """A signature for the thinking with which an answer to this body begins, that `thinking_is_bound` can check."""
    said = list(_thoughts(body))
    *_, prefixes = _prefixes(body)
    return _written(prefixes[0], said[-1].seal if said else "")


def compaction_signature(body: WireBody, content: str) -> str:
    """A signature for a block that stands for all messages of this body."""
    *_, prefixes = _prefixes(body) if binds("anthropic", str(body.get("model"))) else ((),)
    *_, (role, _) = [("", []), *turns(body)]
    stated = rawjson.dumps([_digest(content), _start(body), role, prefixes])
    return b64encode(_BLOCK + stated).decode()


def is_as_signed(block: Mapping[str, Any]) -> bool | None:
    """Whether a compaction block says what it said when it was signed; None if the signature is not ours to read."""
    stated = _stated(block)
    return None if stated is None else bool(stated[0] == _digest(str(block.get("content"))))


def thinking_is_bound(body: WireBody) -> Findings:
    """messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.
    Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".
    """
    # Only what `StrictProvider` signed can be checked: real signatures are for their provider to read.
    model = body.get("model", "")
    if _behaviour(body.get("thinking")) == DROP or (model and not binds("anthropic", str(model))):
        return
    before = ""
    for thought in _thoughts(body):
        ours = _read(thought.seal)
        # Oldest blocks may be left out: who has none before it may have had some.
        if ours and ours[0] not in thought.prefixes:
            yield thought.where, "bound to a different conversation: what stands before it is not what stood there"
        elif ours and before and ours[1] != _digest(before):
            yield thought.where, "bound to a different conversation: the thinking before it is not what stood there"
        before = thought.seal


def binding_is_known(body: WireBody) -> Findings:
    """thinking.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'"""
    behaviour = _behaviour(body.get("thinking"))
    if behaviour is not None and behaviour not in BEHAVIOURS:
        yield "thinking.block_binding.prefix_mismatch_behavior", f"{behaviour!r} is neither 'error' nor 'drop_block'"


class _Thought(NamedTuple):
    where: str
    seal: str  # its signature, or the data of a redacted one
    prefixes: tuple[str, ...]  # digests of what stands before it, thinking apart: as it is, and as it was


def _thoughts(body: WireBody) -> Iterator[_Thought]:
    for (where, block), prefixes in zip(blocks(body), _prefixes(body), strict=False):
        if block["type"] in THINKING:
            yield _Thought(where, str(block.get("signature") or block.get("data") or ""), prefixes)


def _prefixes(body: WireBody) -> Iterator[tuple[str, ...]]:
    """The digests of all before each block, and of all there is: of what stands there, and of what a block of the
    provider's stands for."""
    so_far: tuple[str, ...] = (_start(body),)
    ended = ""  # the role of the last message that a block stands for, right behind it
    for where, message in messages(body):
        role = str(message.get("role"))
        for _, block in within(message, where):
            if ended and block["type"] != "compaction":
                # A message of the same role would be one with the last that the block stands for.
                so_far, ended = so_far[:1] if role in (ended, "system") else so_far, ""
            yield so_far
            if block["type"] not in THINKING:
                so_far = tuple(_digest(one + canonical([role, _block(block)])) for one in so_far)
            if block["type"] == "compaction" and (stated := _stated(block)) and stated[1] == _start(body):
                so_far, ended = (so_far[0], *stated[3]), stated[2]
    yield so_far


def _start(body: WireBody) -> str:
    return _digest(canonical([_plain(body.get("system")), body.get("tools")]))


def _stated(block: Mapping[str, Any]) -> Any:
    """What the signature of a compaction block says: digests of its text and of its frame, the role of the last
    message, and the digests of all messages; None if it is not ours."""
    try:
        ours = b64decode(str(block.get("signature")), validate=True)
        return rawjson.loads(ours.removeprefix(_BLOCK)) if ours.startswith(_BLOCK) else None
    except (BadRequest, ValueError):
        return None


def _block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return (
        {**block, "content": _plain(block["content"])}
        if block["type"] == "tool_result" and "content" in block
        else block
    )


def _plain(content: Any) -> Any:
    """A string says what one block of text says."""
    match content:
        case str():
            return [{"type": "text", "text": content}]
        case None:
            return []
    return content


def _behaviour(thinking: Any) -> Any:
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return binding.get("prefix_mismatch_behavior") if isinstance(binding, Mapping) else None


def _written(prefix: str, before: str) -> str:
    return b64encode(_OURS + f"{prefix}:{_digest(before)}".encode()).decode()


def _read(seal: str) -> tuple[str, str] | None:
    """What a signature is bound to: the digest of what stood before it, and of the thinking before it."""
    try:
        ours = b64decode(seal, validate=True)
    except ValueError:
        return None
    prefix, _, before = ours.removeprefix(_OURS).decode("ascii", "replace").partition(":")
    return (prefix, before) if ours.startswith(_OURS) else None


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
