"""Whether clew harms anybody: sessions of all clients with one fault each, beside the same without clew's part in it.

python bench/fuzz_harm.py CALLS SEED
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harming import Harm, fuzz


def tell(harm: Harm) -> None:
    print(f"\r{harm.calls:,} calls, {sum(harm.kinds.values())} harmed", end="", file=sys.stderr, flush=True)


def main() -> None:
    found = fuzz(int(sys.argv[1]), int(sys.argv[2]), tell)
    print(f"\n{found.calls:,} calls")
    for kind, number in found.kinds.most_common():
        print(f"{number:6,}  {kind}")
    print("\n".join(found.told[:40]))
    sys.exit(bool(found.kinds))


if __name__ == "__main__":
    main()
