"""The page of an audit gives nothing away and obeys nobody, whatever was said in a conversation."""

from hypothesis import given
from hypothesis import strategies as st

from auditing import TEXTS, Calls, PageReading, agent, all_of, session, user
from clew.audit import AuditReport, FileAudit, audited
from clew.screens.audit_page import page
from clew.sessions.transcripts import Transcript

ALLOWED = set(
    "html head meta title style body main h1 h2 h3 p div table thead tbody tr th td span svg rect footer code "
    "details summary ul li".split()
)
hostile = st.text(alphabet=st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=40) | st.sampled_from(
    [
        "<script>alert(1)</script>",
        "'\"><img src=x onerror=1>",
        "${sentence} $style",
        "</style><b>",
        "&lt;",
        "]]>",
        "\x00",
    ]
)


def report(transcript: Transcript, content: bool = False) -> AuditReport:
    return AuditReport.of(["here"], [FileAudit("f", 1, 1, list(audited(transcript, content=content)))])


@given(hostile, hostile, hostile, hostile)
def test_whatever_was_said_the_page_is_the_same_page(text: str, path: str, model: str, name: str) -> None:
    calls = Calls()
    history = [
        *user(f"{text} We decided to keep {text} in the queue rather than {path}. Look at src/{path}.py"),
        *calls.read(f"/x/{path}.py", text),
        *calls.run(f"make build {text}"),
    ]
    later = [*user("On."), *calls.read(f"/x/{path}.py", text)]
    made = session(history, later, summaries=[path], model=model, name=name)
    for content in (False, True):
        read = PageReading(page(report(made, content), content))
        assert {tag for tag, _ in read.tags} <= ALLOWED
        names = {name for _, attributes in read.tags for name in attributes}
        assert not {n for n in names if n.startswith("on") or n in ("src", "href", "action", "style")}


SAID = "wanderlust"


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5), st.booleans())
def test_nothing_of_a_conversation_is_in_the_page_unless_asked_for(texts: list[str], sealed: bool) -> None:
    calls = Calls()
    said = [text.replace("src/a.py", f"src/{SAID}.py").replace("Postgres", SAID) for text in texts]
    history = [
        *(m for text in said for m in [*user(f"{SAID}: {text}"), *agent(f"{text} {SAID}")]),
        *calls.read(f"/{SAID}/{SAID}.py", SAID),
        *calls.run(f"make {SAID} --now"),
    ]
    later = [*user("On."), *calls.read(f"/{SAID}/{SAID}.py", SAID)]
    summary = None if sealed else f"{SAID} {all_of(history[:2])}"
    made = session(history, later, summaries=[summary], model=SAID, name=SAID)
    assert SAID not in page(report(made))
    assert (
        sealed or SAID in page(report(made, content=True), content=True) or not report(made, True).compactions[0].lost
    )
