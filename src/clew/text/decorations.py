"""What programs say under the user's role: wrapped around the user's words, or as whole messages of their own."""

import re
from collections.abc import Iterator, Sequence

# What clients put beside a message in one turn and take away in another: with another one it is the same message.
PASSING = (
    "system-reminder",
    "system_reminder",
    "context_status",
    "context-status",
    "environment_details",
    "environment_context",
    "session_context",
    "current_datetime",
    "total_tokens",
)
# What clients wrap in tags and put beside, before or after what was typed; some take it away again later.
TAGS = (
    *PASSING,
    "hook_context",
    "user_instructions",
    "command-name",
    "command-message",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "skill",
    "subagent_notification",
    "task-notification",
    "turn_aborted",
    "user_shell_command",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "post-tool-use-hook",
    "user-prompt-submit-hook",
)
_WRAPS = (
    *((f"<{tag}>", f"</{tag}>") for tag in TAGS),
    ("<hook_prompt", "</hook_prompt>"),  # has attributes
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
)
_CLOSINGS = dict(_WRAPS)
_OPENING = re.compile("|".join(map(re.escape, _CLOSINGS)))
_SURROUNDINGS = ("<environment_context>", "<environment_details>", "<session_context>")
_OFTEN = frozenset(f"<{tag}>" for tag in PASSING)
# All others end at the last closing of their name: before it, it is text that a program printed, or a file has.
_ARGUMENTS = ("<command-args>", "</command-args>")  # around what was typed after a command: the words are the user's

# How messages begin in which an agent that talks in plain text is told what its command printed.
OBSERVED = ("<returncode>", "<observation", "Observation:", "OBSERVATION:", "EXECUTION RESULT of [", "[Command output]")
# How clew itself labels what is no user's, where it has to stand under their role: what a client attached, what a model
# wrote of a branch that was left, what a command printed that the user ran.
ATTACHED = "[attachment"
_ATTACHED = re.compile(r"\[attachment(?: [^\]:\n]{1,400})?\]\n")
LEFT_BRANCH = "[what was done on a branch that was left]"
RAN_COMMAND = "[the user ran a command: "
OWN_COMMAND = "\n\n[I ran a command myself: "  # after what was typed; to the end it is what the command printed

# How messages begin in which a client goes on from a summary: an account of what was said, not what the user says.
FROM_SUMMARY = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted into the following summary",
    "Some of the conversation history has been summarized to free up context",
    "I spoke to you previously about a number of things.\n",
    "<state_snapshot>",
)
# How messages begin that a client writes whole: instructions, skills, what a command printed, that the user
# interrupted, orders to sum up or to name, and what follows those.
OPENINGS = (
    *OBSERVED,
    *FROM_SUMMARY,
    LEFT_BRANCH,
    RAN_COMMAND,
    "Base directory for this skill:",
    "[Request interrupted by user",
    "Read the output file to retrieve the result:",  # what follows a notification, outside its tags
    "Full transcript available at:",
    "# AGENTS.md instructions",
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
    "Your task is to create a detailed summary of the conversation so far",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Please create a detailed summary of the conversation so far. The history is being compacted",
    "Generate a title for this conversation:",
    "Here is the conversation so far: <conversation>",
    "Generate a new <state_snapshot>",
    "Critically evaluate the <state_snapshot>",
    "You are the component that summarizes",
    # What opencode says in the user's place when it has compacted by itself.
    "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed.",
)
# How messages under the role of the system begin in which a client says how it works.
_MANUALS = ("<skills_instructions>", "<permissions instructions>", "<managed_developer_instructions>")
# What of the above is no client's own: what a tool, a command or a model said, or a file that is shown.
_REPORTS = (*OBSERVED, *FROM_SUMMARY, LEFT_BRANCH, RAN_COMMAND)
_REPORTING = re.compile(
    r"<(?:local-command-std(?:out|err)|subagent_notification|task-notification|user_shell_command|bash-\w{3,6}"
    r"|ide_selection|ide_diagnostics|post-tool-use-hook)>"
)
_SHOWN = re.compile(r"\[attachment (?:file|edited_text_file|directory|mcp_resource|selected_lines_in_ide)\b")
# Where a client goes on behind a summary that it shows, and the tags in which it has it written.
_BEHIND_SUMMARY = (
    "\nIf you need specific details from before compaction",
    "\nContinue the conversation from where it left off",
    "\nPlease continue the conversation from where we left it off",
)
_TAG = re.compile(r"</?[a-z_-]{1,40}>")

# How messages begin that aider puts before each question anew, the answers that it makes up to them included.
MOVING = (
    "I have *added these files to the chat*",
    "Here are summaries of some files present in my git repository",
    "Here are some READ ONLY files, provided for your reference",
    "I am not sharing any files that you can edit yet.",
    "Don't try and edit any existing code without asking me to add",
    "Ok, based on your requests I will suggest which files need to be edited",
    "Ok, any changes I propose will be to those files.",
    "Ok, I won't try and edit those files without asking first.",
    "Ok, I will use these files as references.",
)


_PASSING = tuple((f"<{tag}>", f"</{tag}>") for tag in PASSING)


def lasting(text: str) -> str:
    """Text without what a client puts beside it in one turn and takes away in another; all of it if that is all."""
    return _without(text, _PASSING).strip() or text.strip()


def is_passing(text: str) -> bool:
    """Whether there is nothing but what comes and goes."""
    return not _without(text, _PASSING).strip()


def is_moving(text: str) -> bool:
    """Whether it stands before the newest question, whichever that is."""
    return text.startswith(MOVING)


def surroundings(text: str) -> list[str]:
    """What a client says of where it runs, in tags of its own; not what stands in those of something else."""
    return [text[start:end] for opening, start, end in _wraps(text) if opening in _SURROUNDINGS]


def undecorated(text: str) -> str:
    """Text without what clients wrap around messages and take away again."""
    text = _outside(text) if "</" in text else text  # what every closing has, and most text has not
    for tag in _ARGUMENTS:
        text = text.replace(tag, "")
    return text.strip()


def _without(text: str, wraps: Sequence[tuple[str, str]]) -> str:
    if "</" not in text:  # what every closing has, and most text has not
        return text
    for opening, closing in wraps:
        parts, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (stop := text.find(closing, start)) >= 0:
            parts.append(text[at:start])
            at = stop + len(closing)
        text = "".join([*parts, text[at:]]) if at else text
    return text


def _outside(text: str) -> str:
    """What stands outside of all wraps."""
    parts, at = list[str](), 0
    for _, start, end in _wraps(text):
        parts.append(_typed_in(text[at:start], is_behind=at > 0))
        at = end
    return "".join([*parts, _typed_in(text[at:], is_behind=at > 0)])


def _typed_in(text: str, is_behind: bool) -> str:
    """Of what stands behind a wrap, what stands behind all closings: what one printed may have closed another."""
    if not is_behind or "</" not in text:
        return text
    ends = [end + len(closing) for closing in {*_CLOSINGS.values()} if (end := text.rfind(closing)) >= 0]
    return text[max(ends, default=0) :]


def _wraps(text: str) -> Iterator[tuple[str, int, int]]:
    """How each wrap opens, where it begins and ends: what is in one opens and closes no other."""
    look, last = 0, dict[str, int]()
    while opening := _OPENING.search(text, look):
        closing = _CLOSINGS[opening[0]]
        end = last.setdefault(closing, text.rfind(closing))
        if end < opening.end():  # it is never closed
            look = opening.end()
            continue
        if opening[0] in _OFTEN:
            # Words may be typed between two of them; a closing without an opening is text of the one before.
            first = text.find(closing, opening.end())
            again = text.find(opening[0], first)
            end = text.rfind(closing, first, again) if again >= 0 else end
        look = end + len(closing)
        yield opening[0], opening.start(), look


def is_program_made(text: str) -> bool:
    """Whether nobody typed any of it, whatever role it comes under; an empty text is nobody's."""
    if not text or text.isspace():
        return False
    left = undecorated(text)
    return not left or left.startswith(OPENINGS) or is_moving(left) or _ATTACHED.match(left) is not None


def is_boilerplate(text: str) -> bool:
    """Whether a client says it of its own: not the user, nor a model, a tool or a file that it passes on."""
    if text.startswith(_MANUALS):
        return True
    if not is_program_made(text) or _REPORTING.search(text):
        return False
    left = undecorated(text)
    return not (left.startswith(_REPORTS) or is_moving(left) or _SHOWN.match(left))


def summary_alone(text: str) -> str:
    """What a model wrote of a summary, without what its client says behind it and its tags."""
    stops = [at for behind in _BEHIND_SUMMARY if (at := text.rfind(behind)) >= 0]
    return untagged(text[: min(stops, default=len(text))])


def untagged(text: str) -> str:
    """Text without the tags in which programs wrap what they say: their names are nobody's."""
    return _TAG.sub(" ", text) if "</" in text else text
