"""`python -m clew`, and the command `clew`: no hook or plugin must wait until all other commands are imported."""

import sys


def main() -> None:
    """Run a command."""
    if sys.argv[1:2] == ["hook"]:
        from clew.hooks.running import main as hook

        hook()
    if sys.argv[1:2] == ["plugin"]:
        from clew.plugins.announcing import announce

        announce(sys.argv[2:])
    from clew.cli import main as command

    command()


if __name__ == "__main__":
    main()
