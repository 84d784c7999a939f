"""Pictures in the chat: named or pasted, sent as each format wants it, kept; or refused, and the text comes back."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from textual.events import Paste

from chatting import chatting, sent
from clew.catalog import lookup
from clew.chat.pictures import PICTURE_BYTES, BadPicture, named_pictures, pasted_picture
from clew.store.protocol import Store
from clew.testing.provider import Answer, StrictProvider

MODEL = lookup("gpt-4o")
# One white pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8ffff3f0005fe02fea735810a0000000049454e44ae426082"
)


async def test_a_picture_is_sent_kept_and_shown_again(store: Store, tmp_path: Path) -> None:
    (tmp_path / "my shot.png").write_bytes(PNG)
    with StrictProvider([Answer("It is white."), Answer("Still white.")]) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            hand.chat.prompt.post_message(Paste("'my shot.png'"))
            await hand.until(lambda: hand.chat.prompt.text == '@"my shot.png" ')
            await hand.say(hand.chat.prompt.text + "What colour?")
            assert "Sent as 1 picture: my shot.png (image/png)" in hand.shown
        url = f"data:image/png;base64,{b64encode(PNG).decode()}"
        assert provider.heard[-1].body["messages"][-1]["content"][1] == {"type": "image_url", "image_url": {"url": url}}
        async with chatting(store, tmp_path, provider.url) as hand:  # another process: it is in the log
            assert "(a picture)" in hand.shown
            await hand.say("And now?")
            assert url in sent(provider)


@pytest.mark.parametrize(("path", "block"), [("anthropic", "image"), ("openai_responses", "input_image")])
def test_each_format_has_its_own_shape(tmp_path: Path, path: str, block: str) -> None:
    from clew.agent.results import asked

    (tmp_path / "a.png").write_bytes(PNG)
    [picture] = named_pictures("see @a.png and @a.png", lambda name: tmp_path / name, MODEL)
    said = asked("see", [picture], path)
    assert said["content"][1]["type"] == block
    assert b64encode(PNG).decode() in json.dumps(said)


async def test_what_cannot_be_sent_is_said_and_the_text_comes_back(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.png").write_bytes(b"no picture")
    with StrictProvider([]) as provider:
        model = f"{provider.url}/v1#gpt-3.5-turbo"
        async with chatting(store, tmp_path, model=model) as hand:
            await hand.say("Look at @a.png please")
            assert "gpt-3.5-turbo takes no images" in hand.shown
            assert hand.chat.prompt.text == "Look at @a.png please"
            await hand.chat.backend.set('models."gpt-3.5-turbo".images', "true")
            await hand.say("Look at @b.png please")
            assert "b.png is no PNG, JPEG, GIF or WebP" in hand.shown
            assert hand.chat.prompt.text == "Look at @b.png please"
    assert not provider.heard


def test_only_pictures_that_are_there_and_small_enough(tmp_path: Path) -> None:
    def place(name: str) -> Path:
        return tmp_path / name

    (tmp_path / "big.png").write_bytes(PNG + bytes(PICTURE_BYTES))
    (tmp_path / "a.JPG").write_bytes(b"\xff\xd8\xff\xe0")
    assert [p.mime for p in named_pictures("@gone.png mail@a.JPG @a.JPG @notes.txt", place, MODEL)] == ["image/jpeg"]
    with pytest.raises(BadPicture, match=r"big.png is too large to send: 3,750,0\d\d bytes"):
        named_pictures("@big.png", place, MODEL)
    assert pasted_picture("a.JPG\n", place) == "@a.JPG "
    assert not any(pasted_picture(text, place) for text in ("gone.png", "a.JPG big.png", "it's", "", "x" * 9_999))
