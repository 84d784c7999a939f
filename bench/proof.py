"""Measure what clew claims, beside others, and write it into the documents.

python bench/proof.py                      all parts, with what is installed; JSON in bench/results
python bench/proof.py --only rules,dollars some of them
python bench/proof.py --data DIR           with the corpora of a folder
python bench/proof.py --pages              only write the kept figures into README and docs"""

import argparse
import resource
import secrets
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

from benchmark.progress import bar
from proofs import PARTS, Missing, Settings, part
from proofs.pages import documents, keep, pictures


def main() -> int:
    """Run it; 1 if a part could not be measured."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", help="parts, separated by commas: " + ", ".join(PARTS))
    asked.add_argument("--data", type=Path, help="a folder with corpora that are not shipped")
    asked.add_argument("--seed", type=int, help="of what is made up; a new one if not given")
    asked.add_argument("--quick", action="store_true", help="small samples, to see that it runs; nothing is kept")
    asked.add_argument("--share", type=float, default=1.0, help="measure only this share of the material, and keep it")
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument(
        "--pages", action="store_true", help="measure nothing, write the kept figures into the documents"
    )
    given = asked.parse_args()
    names = given.only.split(",") if given.only else list(PARTS)
    if unknown := set(names) - set(PARTS):
        asked.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    begin = time.monotonic()
    left_out = [] if given.pages else [name for name in names if not measured(name, given, seed)]
    if not given.quick:
        for path, text in (*documents(), *pictures()):
            path.write_text(text)
    if not given.pages:
        print(f"all: {time.monotonic() - begin:.0f} s, seed {seed}")
    if left_out:
        print("not measured: " + ", ".join(left_out), file=sys.stderr)
    return bool(left_out)


def measured(name: str, given: argparse.Namespace, seed: int) -> bool:
    """Measure one part and keep its figures; a line about it, or about what it lacks. What fails ends no other part."""
    begin, used = time.monotonic(), cpu()
    print(f"{name}: begins", file=sys.stderr)
    try:
        with bar(name) as heard:
            figures = part(name).measure(Settings(seed, given.data, given.quick, given.share, given.processes, heard))
    except Missing as missing:
        print(f"{name}: {missing}", file=sys.stderr)
        return False
    except Exception:
        print(f"{name}: failed after {time.monotonic() - begin:.0f} s", file=sys.stderr)
        traceback.print_exc()
        return False
    seconds, used = time.monotonic() - begin, cpu() - used
    where = ""
    if not given.quick:
        told = {"seed": seed, "share": given.share, "seconds": round(seconds), "cpu_seconds": round(used)}
        where = f", {keep(name, datetime.now(UTC).date().isoformat(), figures, told)}"
    print(f"{name}: {seconds:.0f} s, {used:.0f} s of CPU{where}", flush=True)
    return True


def cpu() -> float:
    """Seconds of CPU that this process and its ended children used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    sys.exit(main())
