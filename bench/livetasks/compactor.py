"""clew as a method of CompactBench: compactbench run --method bench/livetasks/compactor.py:ClewCompactor

CompactBench asks a model about what a method leaves of a made-up conversation, and again after the conversation went on
and was compacted once more. clew sees the whole conversation each time, and compacts it without a model."""

from typing import Any, ClassVar

from compactbench.compactors import Compactor
from compactbench.contracts import CompactionArtifact, StructuredState, Transcript

from clew import __version__
from clew.compression import LEAST_TARGET, compress
from clew.tokens import counter_for

MODEL = "gpt-4o"  # whose vocabulary counts
LONGEST = 8_000  # characters that CompactBench takes
SHARE = 0.5  # of the conversation's tokens, if no other is configured
CHARACTERS = 4  # of a token, about


class ClewCompactor(Compactor):
    """What `clew.compress` leaves of a conversation, as the text that stands in for it."""

    name: ClassVar[str] = "clew"
    version: ClassVar[str] = __version__

    async def compact(
        self,
        transcript: Transcript,
        config: dict[str, Any] | None = None,
        previous_artifact: CompactionArtifact | None = None,
    ) -> CompactionArtifact:
        """The conversation in half of its tokens, or in the least that clew takes."""
        messages = [{"role": turn.role.value, "content": turn.content} for turn in transcript.turns]
        share = float((config or {}).get("share", SHARE))
        count = counter_for(MODEL).text
        goal = min(int(sum(count(turn.content) for turn in transcript.turns) * share), LONGEST // CHARACTERS)
        found = compress(messages, target_tokens=max(LEAST_TARGET, goal), model=MODEL)
        text = "\n".join(f"{message['role']}: {_said(message)}" for message in found.messages)
        return CompactionArtifact(
            summaryText=text[-LONGEST:],
            structured_state=StructuredState(),
            selectedSourceTurnIds=[turn.id for turn in transcript.turns],
            warnings=[f"cut to {LONGEST} characters"] if len(text) > LONGEST else [],
            methodMetadata={"method": self.name, "version": self.version, "calls": 0, "share": share},
        )


def _said(message: Any) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content)
