"""`python -m clew`, and the command `clew`: no hook or plugin must wait until all other commands are imported."""

import os
import sys


def main() -> None:
    """Run a command."""
    match sys.argv[1:]:
        case ["hook", *words] if not set(words) & {"-h", "--help"}:
            from clew.config.places import here
            from clew.hooks.running import run
            from clew.resident.calling import answered

            sys.exit(run(words, sys.stdin.buffer, sys.stdout, lambda words, said: answered(words, said, here().env)))
        case ["mcp"] | ["plugin", "claude" | "opencode" | "pi"] as words:  # as clew install has clients start them
            from clew.config.places import here
            from clew.resident.calling import passed_on

            if words[1:]:
                from clew.plugins.announcing import announce

                announce(words[1:])
            if (code := passed_on(words[0], words[1:], here().env)) is not None:
                sys.stdout.flush()
                os._exit(code)  # a thread may wait for more on standard input
        case ["resident"]:
            import asyncio

            from clew.config.places import here
            from clew.resident.serving import Resident

            asyncio.run(Resident(here().env).run())
            return
    from clew.cli import main as command

    command()


if __name__ == "__main__":
    main()
