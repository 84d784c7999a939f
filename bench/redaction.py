"""What is taken for a secret, what is missed, and what looking costs: python bench/redaction.py [--data DIR] [--show]

DIR holds conversations (`*.jsonl.gz`, with `messages` or with `sessions` of `turns`) or files such as an agent reads,
which are cut into pieces of 20,000 characters. Without it the files are those of the standard library. What is found
is counted for both policies: `keys` (what a program made) and `redact` (passwords that a person chose, too). Whether
a find is a secret nobody can count: `--show` prints each with what stands around it, to be looked at.

What is missed is counted on secrets that are made up here, in places where they occur: as vendors document them, and
as people write them. They were written after the rules, by somebody who knew the rules.
"""

import argparse
import gzip
import json
import sysconfig
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits
from time import process_time
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from clew.secrets.masking import find

PIECE = 20_000  # characters of a file that an agent reads at once
LARGEST = 400_000  # bytes; larger files are data
ROUNDS = 20  # of each made-up secret in each place
POLICIES = {"keys": False, "redact": True}  # and whether chosen passwords are secrets
AROUND = 60  # characters shown on either side


class Found(NamedTuple):
    """What was found in texts under one policy."""

    kinds: Counter[str]
    items: int  # that hold at least one
    cpu: float


def main(args: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(sysconfig.get_path("stdlib")), help="conversations or files")
    parser.add_argument("--show", action="store_true", help="print each find and what is around it")
    parser.add_argument("--seed", type=int, default=7, help="another seed, other made-up secrets")
    parser.add_argument("--json", type=Path, help="figures to a file: bench/results/redaction.json is in the documents")
    given = parser.parse_args(args)
    console = Console(highlight=False)
    texts = list(dict.fromkeys(_texts(given.data)))
    found, missed = hits(texts), misses(given.seed)
    console.print(hits_table(found))
    if given.show:
        show(texts)
    console.print(misses_table(missed))
    if given.json:
        made = datetime.now(UTC).date().isoformat()
        kept = {"made": made, "found": found, "missed": missed}
        given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


# What is taken for a secret


def _texts(folder: Path) -> Iterator[str]:
    packed = sorted(folder.rglob("*.jsonl.gz"))
    for path in packed:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield from _said(json.loads(line))
    for path in () if packed else sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST:
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            yield from (text[at : at + PIECE] for at in range(0, len(text), PIECE))


def _said(conversation: dict[str, object]) -> Iterator[str]:
    """Each thing that was said, called or answered."""
    messages = conversation.get("messages") or ()
    sessions = conversation.get("sessions") or ()
    turns = [turn for session in _dicts(sessions) for turn in _dicts(session.get("turns"))]
    for message in (*_dicts(messages), *turns):
        content = message.get("content")
        if isinstance(content, str):
            yield content
        yield from (str(part["text"]) for part in _dicts(content) if "text" in part)
        yield from (
            str(c["arguments"]) for call in _dicts(message.get("tool_calls")) for c in _dicts([call["function"]])
        )


def _dicts(value: object) -> list[dict[str, object]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list | tuple) else []


def hits(texts: Sequence[str]) -> dict[str, Any]:
    """How much is taken for a secret, and what it costs to look."""
    begun = process_time()
    for text in texts:
        sha256(text.encode("utf-8", "surrogatepass"))
    reading, size, policies = process_time() - begun, sum(map(len, texts)) / 1e6, dict[str, Any]()
    for policy, chosen in POLICIES.items():
        found = _found(texts, chosen)
        policies[policy] = {
            "found": found.kinds.total(),
            "items": found.items,
            "ms_per_mb": round(found.cpu / size * 1e3),
            "times_sha256": round(found.cpu / reading),
            "kinds": dict(found.kinds.most_common()),
        }
    return {"items": len(texts), "mb": round(size, 1), "policies": policies}


def hits_table(found: Mapping[str, Any]) -> Table:
    """The same, to be read."""
    table = Table(title=f"taken for secrets: {found['items']:,} items, {found['mb']:.1f} MB")
    for column in ("policy", "found", "items", "per 1,000 items", "per MB", "CPU ms per MB", "times sha256", "kinds"):
        table.add_column(column, justify="left" if column in ("policy", "kinds") else "right")
    for policy, f in found["policies"].items():
        kinds = ", ".join(f"{n} {kind}" for kind, n in f["kinds"].items())
        rates = f"{f['found'] / found['items'] * 1e3:.2f}", f"{f['found'] / found['mb']:.2f}"
        table.add_row(policy, *map(str, (f["found"], f["items"], *rates, f["ms_per_mb"], f["times_sha256"], kinds)))
    return table


def _found(texts: Iterable[str], chosen: bool) -> Found:
    kinds: Counter[str] = Counter()
    items, begun = 0, process_time()
    for text in texts:
        secrets = find(text, chosen=chosen)
        kinds.update(secret.kind for secret in secrets)
        items += bool(secrets)
    return Found(kinds, items, process_time() - begun)


def show(texts: Iterable[str]) -> None:
    """Print each find of the stricter policy, and whether the other one has it too."""
    for text in texts:
        made = {(s.start, s.stop) for s in find(text, chosen=False)}
        for kind, start, stop in find(text):
            policy = "keys" if (start, stop) in made else "redact"
            before, behind = text[max(0, start - AROUND) : start], text[stop : stop + AROUND // 2]
            print(f"{policy:7}{kind}: {before!r} >>> {text[start:stop][:80]!r} <<< {behind!r}")


# What is missed

Maker = Callable[[Random], str]
BASE62, B64 = ascii_letters + digits, ascii_letters + digits + "+/"
LOWER_HEX = hexdigits[:16]
WORDS = ("correct", "horse", "battery", "staple", "winter", "orchid", "Munich", "falcon", "river", "Copper")


def _run(random: Random, count: int, letters: str = BASE62) -> str:
    return "".join(random.choices(letters, k=count))


def _jwt(random: Random) -> str:
    head, body = ({"alg": "HS256", "typ": "JWT"}, {"sub": _run(random, 12), "iat": random.randrange(10**9)})
    parts = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, body))
    return ".".join((*parts, _run(random, 43)))


def _pem(random: Random) -> str:
    lines = "\n".join(_run(random, 64, B64) for _ in range(8))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----"


def _uuid(random: Random) -> str:
    return "-".join(_run(random, n, LOWER_HEX) for n in (8, 4, 4, 4, 12))


# As vendors document them: known by themselves, wherever they stand.
SHAPED: dict[str, Maker] = {
    "AWS key id": lambda r: "AKIA" + _run(r, 16, ascii_uppercase + "234567"),
    "GitHub, classic": lambda r: "ghp_" + _run(r, 36),
    "GitHub, fine-grained": lambda r: f"github_pat_{_run(r, 22)}_{_run(r, 59)}",
    "GitLab": lambda r: "glpat-" + _run(r, 20),
    "OpenAI, project": lambda r: f"sk-proj-{_run(r, 74)}T3BlbkFJ{_run(r, 74)}",
    "OpenAI, old": lambda r: f"sk-{_run(r, 20)}T3BlbkFJ{_run(r, 20)}",
    "Anthropic": lambda r: f"sk-ant-api03-{_run(r, 93, BASE62 + '-_')}AA",
    "Google": lambda r: "AIza" + _run(r, 35, BASE62 + "-_"),
    "Hugging Face": lambda r: "hf_" + _run(r, 34, ascii_letters),
    "Slack bot": lambda r: f"xoxb-{_run(r, 12, digits)}-{_run(r, 13, digits)}-{_run(r, 24)}",
    "Slack webhook": lambda r: f"https://hooks.slack.com/services/T{_run(r, 8)}/B{_run(r, 10)}/{_run(r, 24)}",
    "Stripe": lambda r: "sk_live_" + _run(r, 24),
    "SendGrid": lambda r: f"SG.{_run(r, 22)}.{_run(r, 43)}",
    "npm": lambda r: "npm_" + _run(r, 36),
    "PyPI": lambda r: "pypi-AgEIcHlwaS5vcmc" + _run(r, 160, BASE62 + "-_"),
    "Telegram bot": lambda r: f"{_run(r, 10, '123456789')}:AA{_run(r, 33, BASE62 + '-_')}",
    "DigitalOcean": lambda r: "dop_v1_" + _run(r, 64, LOWER_HEX),
    "Databricks": lambda r: "dapi" + _run(r, 32, LOWER_HEX),
    "Shopify": lambda r: "shpat_" + _run(r, 32, LOWER_HEX),
    "Linear": lambda r: "lin_api_" + _run(r, 40),
    "Notion": lambda r: f"ntn_{_run(r, 11, digits)}{_run(r, 35)}",
    "Sentry": lambda r: f"sntryu_{_run(r, 64, LOWER_HEX)}",
    "Grafana": lambda r: f"glsa_{_run(r, 32)}_{_run(r, 8, LOWER_HEX)}",
    "Age key": lambda r: "AGE-SECRET-KEY-1" + _run(r, 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "JWT": _jwt,
    "private key": _pem,
}
# Known only by what they are called, or by where they stand.
RANDOM: dict[str, Maker] = {
    "32 hex": lambda r: _run(r, 32, LOWER_HEX),
    "40 base64": lambda r: _run(r, 40, B64),
    "24 letters and digits": lambda r: _run(r, 24),
    "UUID": _uuid,
}
CHOSEN: dict[str, Maker] = {
    "word and digits": lambda r: r.choice(WORDS).capitalize() + _run(r, 4, digits),
    "word, digits, sign": lambda r: r.choice(WORDS) + _run(r, 2, digits) + r.choice("!#$"),
    "two words": lambda r: "".join(r.sample(WORDS, 2)),
    "four words": lambda r: "-".join(r.sample(WORDS, 4)),
    "small letters": lambda r: _run(r, 9, ascii_lowercase),
}
BARE = ("{}", "I put {} into the vault", '{{"output": "{}"}}', "+  - key: {}", "see `{}`.", "x={} y=2")
NAMED = (
    "API_KEY={}", 'api_key = "{}"', '{{"client_secret": "{}"}}', "  secret_key: {}", 'headers["X-Api-Key"] = "{}"',
    "curl -H 'Authorization: Bearer {}' https://h/x", "export SERVICE_TOKEN='{}'", "--auth-token {}",
    "access_token={}&x=1", "aws_secret_access_key = {}",
)  # fmt: skip
PASSWORDS = (
    "DB_PASSWORD={}", 'password = "{}"', '{{"password": "{}"}}', "    password: {}", "postgres://app:{}@db:5432/app",
    "mysql -u root -p{} app", "curl -u admin:{} https://h", "the password is {}", "IDENTIFIED BY '{}'",
    "PGPASSWORD={} psql",
)  # fmt: skip


def misses(seed: int) -> dict[str, Any]:
    """Of made-up secrets, how many of each sort are missed."""
    sorts = (
        ("known by themselves", SHAPED, BARE),
        ("random, behind a name", RANDOM, NAMED),
        ("random, as a password", RANDOM, PASSWORDS),
        ("chosen by a person", CHOSEN, PASSWORDS),
    )
    found: dict[str, Any] = {}
    for sort, kinds, places in sorts:
        planted = [(kind, place, make) for kind, make in kinds.items() for place in places]
        missed = {policy: _missed(planted, Random(f"{seed} {sort}"), c) for policy, c in POLICIES.items()}
        most = [f"{where} {n}" for where, n in missed["redact"].most_common(4)]
        found[sort] = {"planted": len(planted) * ROUNDS, **{p: n.total() for p, n in missed.items()}, "most": most}
    return found


def misses_table(missed: Mapping[str, Any]) -> Table:
    """The same, to be read."""
    table = Table(title=f"missed, of made-up secrets ({ROUNDS} of each kind in each place)")
    for column in ("sort", "planted", *(f"missed by {policy}" for policy in POLICIES), "where most"):
        table.add_column(column, justify="left" if column in ("sort", "where most") else "right")
    for sort, f in missed.items():
        shares = (f"{f[policy]} ({f[policy] / f['planted']:.1%})" for policy in POLICIES)
        table.add_row(sort, str(f["planted"]), *shares, "; ".join(f["most"]))
    return table


def _missed(planted: Iterable[tuple[str, str, Maker]], random: Random, chosen: bool) -> Counter[str]:
    """The secrets of which something is left to read, by kind and place."""
    missed: Counter[str] = Counter()
    for kind, place, make in planted:
        for _ in range(ROUNDS):
            secret = make(random)
            said = json.dumps(secret)[1:-1] if place.startswith("{{") else secret
            text = place.format(said)
            stop = text.index(said) + len(said)
            start = stop - len(said.removeprefix("https://hooks.slack.com/services/"))  # who it is for is no secret
            if not any(s.start <= start and s.stop >= stop for s in find(text, chosen=chosen)):
                missed[f"{kind} in {place.replace('{{', '{').replace('}}', '}')}"] += 1
    return missed


if __name__ == "__main__":
    main()
