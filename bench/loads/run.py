"""One scenario in this process: python -m loads.run MODULE.FUNCTION JSON; the figures are the last line, as JSON."""

import asyncio
import inspect
import json
import sys
from dataclasses import asdict
from importlib import import_module


def main() -> None:
    module, _, name = sys.argv[1].rpartition(".")
    made = getattr(import_module(f"loads.{module}"), name)(**json.loads(sys.argv[2]))
    if inspect.iscoroutine(made):
        made = asyncio.run(made)
    print()
    print(json.dumps([asdict(figure) for figure in made]))


if __name__ == "__main__":
    main()
