"""A gateway before a strict provider, and a command that asks it: python bench/schema_gateway.py COMMAND...

{schema} and {url} in the command are the description of what is served, and where; `make fuzz-gateway` has
schemathesis ask. What comes of the command is what comes of this.
"""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from serving import serving  # noqa: E402


def main() -> None:
    with serving(window=60_000) as served:
        where = {"{schema}": str(TESTS / "gateway_openapi.json"), "{url}": served.url}
        done = subprocess.run([where.get(part, part) for part in sys.argv[1:]], check=False)
        told = served.gateway.metrics.text().splitlines()
    # What cannot be read may go on as it came; for nothing else clew may fail.
    failed = [line for line in told if line.startswith("clew_failed_open_total{") and "BadRequest" not in line]
    print("\n".join(failed))
    sys.exit(done.returncode or bool(failed))


if __name__ == "__main__":
    main()
