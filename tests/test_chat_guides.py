"""AGENTS.md and CLAUDE.md in `clew chat`: read, sent and shown."""

from pathlib import Path

from chatting import chatting
from clew.chat.guides import GUIDE_CHARACTERS, guides
from clew.store.protocol import Store
from clew.testing.provider import Answer, StrictProvider


async def test_what_a_project_says_is_sent_and_shown_and_may_change(store: Store, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    with StrictProvider([Answer("Yes.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            assert "The agent goes by AGENTS.md (9 characters)." in hand.shown
            await hand.say("Hello.")
            system = provider.heard[-1].body["messages"][0]["content"]
            assert "What AGENTS.md of this project says" in system
            assert system.endswith("Use tabs.")
        (tmp_path / "AGENTS.md").write_text("Use spaces.\n")
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.say("Again.")
            messages = provider.heard[-1].body["messages"]
            assert messages[0]["content"].endswith("Use spaces.")
            assert [m["content"] for m in messages[1:]] == ["Hello.", "Yes.", "Again."]


def test_which_files_are_read(tmp_path: Path) -> None:
    repository, folder = tmp_path / "project", tmp_path / "project/src/app"
    folder.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("Of the folder above the project.")
    (repository / "AGENTS.md").write_text("Of the project.")
    (repository / "CLAUDE.md").write_text("The same for another agent.")
    (repository / "src/AGENTS.md").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("A key.")
    (folder / "CLAUDE.md").write_text("x" * 3 * GUIDE_CHARACTERS)
    assert [guide.name for guide in guides(folder)] == ["CLAUDE.md"]
    (repository / ".git").mkdir()
    found = guides(folder)
    assert [guide.name for guide in found] == ["../../AGENTS.md", "CLAUDE.md"]
    assert found[0].text == "Of the project."
    assert len(found[1].text) < 2 * GUIDE_CHARACTERS
