"""What is planted: forty sentences a developer, a tool or an agent would say, each around a value nobody can guess."""

from random import Random
from typing import Literal, NamedTuple

Origin = Literal["user", "result", "decision", "error"]


class Sentence(NamedTuple):
    """A sentence around a gap, the shape of the value in it, a question for it, and a command that uses it again."""

    text: str
    value: str  # # is a digit, @ a hexadecimal one, ? a letter
    question: str
    use: str = ""


def fill(shape: str, random: Random) -> str:
    """A value of this shape; it begins with no zero, so that a number is a number."""
    signs = {"#": "123456789", "@": "0123456789abcdef", "?": "bcdfghjklmnpqrstvwxz"}
    return "".join(random.choice(signs[c]) if c in signs else c for c in shape)


SENTENCES: dict[Origin, tuple[Sentence, ...]] = {
    "user": (
        Sentence(
            "Generated fixtures belong under var/{} because the linter skips that folder.",
            "?????-@@@@/fixtures",
            "Which folder for generated fixtures does the linter skip?",
            "mkdir -p var/{}",
        ),
        Sentence(
            "The staging gateway listens on port {} and not on the usual one.",
            "2####",
            "On which port does the staging gateway listen?",
            "curl -s localhost:{}/healthz",
        ),
        Sentence(
            "Charge every load test to account {}, finance asked for it.",
            "acct_??##??##??",
            "Which account is charged for a load test?",
        ),
        Sentence(
            "One upload batch must never hold more than {} rows, the partner rejects larger ones.",
            "7####",
            "How many rows may one upload batch hold before the partner rejects it?",
        ),
        Sentence(
            "This work is filed in our tracker as {}.",
            "KRN-#####",
            "Under which number is this work filed in the tracker?",
            "git commit --allow-empty -m 'start {}'",
        ),
        Sentence(
            "Call the release branch {} when you cut it.",
            "release/?????-####",
            "What is the release branch called?",
        ),
        Sentence(
            "Storage changes are reviewed by {} only, nobody else may approve them.",
            "?????.??????",
            "Who reviews and may approve storage changes?",
        ),
        Sentence(
            "Use the certificate with serial {} for the mirror.",
            "@@:@@:@@:@@:@@:@@",
            "Which certificate serial is used for the mirror?",
        ),
        Sentence(
            "The freeze was reported by customer {}, answer them first.",
            "C-####-??",
            "Which customer reported the freeze?",
            "./scripts/tickets --customer {}",
        ),
        Sentence(
            "The nightly export has to be finished before {} UTC, or the bank misses it.",
            "1#:4#:3#",
            "Before what time must the nightly export be finished for the bank?",
        ),
    ),
    "result": (
        Sentence(
            "supervisor: worker socket is /run/{}.sock",
            "?????@@@@",
            "What is the path of the worker socket of the supervisor?",
            "ss -lx | grep {}",
        ),
        Sentence(
            "canary: revision {} deployed by the pipeline",
            "r@@@@@@@@@@",
            "Which revision did the pipeline deploy to the canary?",
            "./scripts/rollout --from {}",
        ),
        Sentence(
            "artifact stored as builds/nightly/{}.tar.zst",
            "?????-@@@@@@",
            "Under what name was the nightly artifact stored in builds?",
        ),
        Sentence(
            "schema: migration {} is the newest one applied",
            "2026####_???????",
            "Which schema migration is the newest applied?",
        ),
        Sentence(
            "pool.conf: max_connections = {} (set by the operator)",
            "8####",
            "What max_connections did the operator set in pool.conf?",
        ),
        Sentence(
            "broker: queue {} created for retries",
            "q-?????-####",
            "Which broker queue was created for retries?",
            "./scripts/broker purge {}",
        ),
        Sentence(
            "slowest trace of the run: {}",
            "tr_@@@@@@@@@@@@",
            "What is the id of the slowest trace of the run?",
        ),
        Sentence(
            "snapshot {} taken before the upgrade",
            "snap-@@@@@@@@",
            "Which snapshot was taken before the upgrade?",
            "./scripts/restore --check {}",
        ),
        Sentence(
            "dataset checksum: {}",
            "sum:@@@@@@@@@@@@@@@@",
            "What is the checksum of the dataset?",
        ),
        Sentence(
            "feature flag {} is on for internal users only",
            "ff_????_????",
            "Which feature flag is on for internal users only?",
        ),
    ),
    "decision": (
        Sentence(
            "I will name the new table {} so that it sorts beside the ledger.",
            "ledger_?????_??",
            "What name was chosen for the new table beside the ledger?",
            "psql -c 'select count(*) from {}'",
        ),
        Sentence(
            "Decision: retries stop after {} milliseconds, since the proxy gives up soon after.",
            "6####",
            "After how many milliseconds do retries stop?",
        ),
        Sentence(
            "We agreed to keep the old parser behind the switch {}.",
            "--????-????-parser",
            "Behind which switch is the old parser kept?",
        ),
        Sentence(
            "I chose {} as the header for idempotency, because the gateway strips the standard one.",
            "X-?????-Once",
            "Which header was chosen for idempotency?",
            "curl -s -H '{}: 1' localhost/replay",
        ),
        Sentence(
            "The cache key will start with {} from now on, which makes old entries unreachable.",
            "v#?@@@:",
            "With what does the cache key start from now on?",
        ),
        Sentence(
            "I put the shared types into {} to break the import cycle.",
            "core/?????_types.py",
            "Into which file were the shared types put to break the import cycle?",
            "wc -l {}",
        ),
        Sentence(
            "The worker count is fixed at {} after the memory measurements.",
            "1## workers",
            "At how many workers was the count fixed after the memory measurements?",
        ),
        Sentence(
            "I decided on the codec {} for the wire, it halves the payload.",
            "?????-z#",
            "Which codec was decided on for the wire to halve the payload?",
        ),
        Sentence(
            "The integration tests now run under the profile {}.",
            "it-?????-##",
            "Under which profile do the integration tests run now?",
            "make integration PROFILE={}",
        ),
        Sentence(
            "The public name of the endpoint becomes {}, the old one redirects.",
            "/v2/?????/??????",
            "What does the public name of the endpoint become?",
        ),
    ),
    "error": (
        Sentence(
            "error {}: lease expired because the clock of the second node runs ahead",
            "KX-####-?",
            "Which error code came when the lease expired because a clock runs ahead?",
            "grep -rn {} docs/errors",
        ),
        Sentence(
            "fatal: index {} is corrupt since the disk filled up during a merge",
            "idx_@@@@@@",
            "Which index is corrupt since the disk filled up?",
        ),
        Sentence(
            "PermissionError: /srv/{}/inbox is owned by root after the restore",
            "?????@@@",
            "Which directory under srv is owned by root after the restore and gives PermissionError?",
            "ls -ld /srv/{}/inbox",
        ),
        Sentence(
            "rejected with status {}: the signature covers the body before compression",
            "SIG_####",
            "With which status was it rejected when the signature covers the body before compression?",
        ),
        Sentence(
            "deadlock between transaction {} and the vacuum job",
            "tx:######",
            "Which transaction was in a deadlock with the vacuum job?",
        ),
        Sentence(
            "assertion failed: expected balance {} because rounding happens twice",
            "9####.##",
            "What balance was expected where rounding happens twice?",
        ),
        Sentence(
            "TLS handshake failed, the peer still presents {}.pem from last year",
            "?????-ca-##",
            "Which pem does the peer still present when the TLS handshake failed?",
            "openssl x509 -noout -in {}.pem",
        ),
        Sentence(
            "OOM: the process {} was killed while sorting the full export",
            "sorter-@@@@",
            "Which process was killed by OOM while sorting the export?",
        ),
        Sentence(
            "warning {}: locale falls back to C and breaks the collation test",
            "W-??-###",
            "Which warning says that the locale breaks the collation test?",
        ),
        Sentence(
            "broken pipe from shard {}, its proxy closes idle streams early",
            "shard-??-##",
            "Which shard gives a broken pipe because its proxy closes idle streams?",
            "./scripts/shards drain {}",
        ),
    ),
}
