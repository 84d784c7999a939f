"""Other packages are run in processes of their own: what they answer, what they raise, and that none can hang."""

from pathlib import Path

import pytest

from benchmark.peers import PEERS, Child, Failed, NoAnswer, Peer, as_method
from made_up import made_up_environment
from packages.standin import shortened, summary_of

WAYS = """
class Newest:
    def __init__(self, window): self.window = window
    def fit(self, messages): return messages[-self.window:]
class Raising(Newest):
    def fit(self, messages): raise ValueError("too old")
class Endless(Newest):
    def fit(self, messages):
        while True: pass
class Loading(Newest):
    def __init__(self, window):
        import time
        self.window = window
        while time.process_time() < 1.2: pass  # a limit is whole seconds
WAYS = {"loading": Loading, "newest": Newest, "raising": Raising, "endless": Endless}
"""
SAID = [{"role": "user", "content": f"{n}"} for n in range(5)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment with a package of a few ways."""
    return made_up_environment(tmp_path, WAYS)


def peer(folder: Path, way: str) -> Peer:
    return Peer(way, "made-up", "made_up", way, "", folder=folder)


def test_a_peer_answers_in_a_process_of_its_own(folder: Path) -> None:
    with Child(peer(folder, "newest")) as child:
        for window in (2, 3):
            child.begin(window)
            assert child.fit(SAID) == SAID[-window:]


def test_what_a_peer_raises_is_told_and_ends_nothing(folder: Path) -> None:
    with Child(peer(folder, "raising")) as child:
        for _ in range(2):
            child.begin(1)
            with pytest.raises(Failed, match="ValueError: too old"):
                child.fit(SAID)


def test_a_peer_that_hangs_is_ended_and_can_begin_anew(folder: Path) -> None:
    with Child(peer(folder, "endless"), cap=0.1) as child:
        child.begin(1)
        with pytest.raises(NoAnswer, match="no answer in 0"):
            child.fit(SAID)
        child.begin(1)


def test_a_method_whose_peer_fails_leaves_nothing(folder: Path) -> None:
    assert as_method(peer(folder, "raising"))(SAID, 100) == ""
    assert as_method(peer(folder, "newest"))(SAID, 7) == "user: 4"


def test_a_peer_that_is_missing_says_why_and_names_no_address(folder: Path) -> None:
    assert "make peers" in peer(folder, "newest").missing()
    (folder / ".venv-made_up" / "failed.txt").write_text(
        "  × No wheel at https://host.example/simple\n  for this Python\n"
    )
    assert peer(folder, "newest").missing() == "could not be installed: No wheel at for this Python"


def test_what_a_package_takes_to_load_is_not_counted(folder: Path) -> None:
    with Child(peer(folder, "loading"), cap=0.1) as child:
        child.begin(2)
        assert child.cpu < 1
        assert child.fit(SAID) == SAID[-2:]


def test_every_peer_says_what_it_is_and_how_it_is_set() -> None:
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    for one in PEERS:
        assert one.settings
        assert (one.folder / f"{one.environment}.txt").read_text().split()
        assert f'"{one.way}"' in (one.folder / f"use_{one.environment}.py").read_text()


def test_the_stand_in_copies_beginnings_and_the_users_most() -> None:
    said = [("user", "Keep this. " * 30), ("assistant", "Noted. " * 60), ("tool", "row " * 400)]
    found = shortened(said, 400)
    assert len(found) <= 400
    assert found.count("Keep this.") > found.count("Noted.") > 0


def test_a_former_summary_keeps_half_of_the_room() -> None:
    found = summary_of("user: one\ntool: two", "Old summary. " * 1_000)
    assert found.startswith("Old summary. ")
    assert found.endswith("user: one\ntool: two")
    assert 3_900 < len(found) < 4_100
