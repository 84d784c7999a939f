"""Made-up sessions with compactions, for tests of the audit."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from clew.audit import CompactionAudit, audited
from clew.audit.survival import shown
from clew.sessions.transcripts import Transcript, TranscriptCompaction, TranscriptStretch, read_all, write
from clew.wire.formats.anthropic import codec as anthropic

MODEL = "claude-opus-4-5"
Message = dict[str, Any]


def user(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


def agent(text: str) -> list[Message]:
    return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]


class Calls:
    """Calls and their results, each pair with an id of its own."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, name: str, given: dict[str, Any], result: str) -> list[Message]:
        self.count += 1
        id = f"toolu_{self.count:04d}"
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": given}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]},
        ]

    def read(self, path: str, text: str) -> list[Message]:
        return self("Read", {"file_path": path}, text)

    def run(self, command: str, output: str = "done") -> list[Message]:
        return self("Bash", {"command": command}, output)


def session(
    *stretches: Sequence[Message], summaries: Sequence[str | None], kept: int = 0, model: str = MODEL, name: str = "one"
) -> Transcript:
    """A session that was compacted between its stretches."""
    first, *later = stretches
    made = [TranscriptCompaction(summary, "auto", 150_000, kept, "2026-03-04T05:06:07.000Z") for summary in summaries]
    rest = [TranscriptStretch(tuple(said), why) for said, why in zip(later, made, strict=True)]
    whole = (TranscriptStretch(tuple(first)), *rest)
    return Transcript("anthropic", whole, name=name, agent="claude-code", model=model, began="2026-03-04T05:00:00.000Z")


def all_of(messages: Sequence[Message]) -> str:
    """All that these messages show."""
    return "\n".join(text for m in messages for item in anthropic.read(m, "message") for text in shown(item))


def counts(found: CompactionAudit) -> dict[str, tuple[int, int]]:
    """For each kind what was kept, of how much."""
    return {kind: (count.kept, count.before) for kind, count in found.kinds.items()}


def one(transcript: Transcript, content: bool = False) -> CompactionAudit:
    [found] = audited(transcript, content=content)
    return found


def through(transcript: Transcript, format: str) -> list[CompactionAudit]:
    """The same, written as an agent writes it and read again."""
    return [found for again in read_all(write(transcript, format), format) for found in audited(again)]


# --- by chance ------------------------------------------------------------------------------------------------------

PATHS = [
    f"{folder}{name}" for folder in ("", "src/", "/repo/src/", "/repo/lib/") for name in ("a.py", "b_c.ts", "d.go")
]
TEXTS = [
    "Never push to the main branch without asking me first.",
    "We decided to use Postgres instead of Redis for the job queue.",
    "The build took 4,812 ms and 73 % of it was linking.",
    "It fails with ConnectionResetError in handleRequest, see https://example.com/issue/7.",
    "All good so far.",
    "Look at `src/a.py` and d.go, then at MAX_RETRIES.",
    "```\ncode_in_a_fence = 12345  # lib/z.py\n```",
]
COMMANDS = [
    "pytest -q tests/test_a.py",
    "cd /repo && make build 2>&1 | tail -5",
    "git status",
    "npm run build -- --prod",
]
calls = Calls()
acts = st.one_of(
    st.builds(user, st.sampled_from(TEXTS)),
    st.builds(agent, st.sampled_from(TEXTS)),
    st.builds(calls.read, st.sampled_from(PATHS), st.sampled_from(["one\ntwo\nthree", "x = 1"])),
    st.builds(calls.run, st.sampled_from(COMMANDS)),
)
histories = st.lists(acts, min_size=1, max_size=12).map(lambda found: [*user("Begin."), *(m for a in found for m in a)])
summaries = st.lists(st.sampled_from([*TEXTS, *PATHS, *COMMANDS]), max_size=5).map("\n".join)
