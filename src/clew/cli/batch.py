"""Commands for archives: many conversations at once, without a store."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import AsJson, app, echo_json, printable

if TYPE_CHECKING:
    from clew.batch import BatchTotals, Run
    from clew.batch.acts import BatchAct
    from clew.batch.folder import TaskDone
    from clew.batch.running import TasksProgress

LEAST = 256  # tokens of a target
HITS = 10

batch = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Compress or search many conversations at once.\n\n"
    "PATH is a session file of an agent, an export (.jsonl with one conversation per line: messages of OpenAI or "
    "Anthropic, or ShareGPT), a file of `clew export`, any of these as .gz, or a folder of them.\n\n"
    "The results are files in the folder --out, one JSON line for each conversation. A run that was stopped or killed "
    "goes on when you give the same command again. What cannot be read is in failures.jsonl.",
    epilog="Example: clew batch compress ~/archive --target 20000 --out short",
)
app.add_typer(batch, name="batch")

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files or folders.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results, outside of PATH.")]
Processes = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Processes to work with, if not one for each core.")
]
TargetTokens = Annotated[
    int,
    typer.Option(metavar="TOKENS", min=LEAST, help="Token budget of each history, without system prompt and tools."),
]
Model = Annotated[
    str, typer.Option("--model", metavar="NAME", help="Model whose tokenizer is used, if not each conversation's own.")
]
PresetName = Annotated[
    str, typer.Option("--preset", metavar="NAME", help="How: default, clearing, summarizing or sliding.")
]


@batch.command("compress", epilog="Example: clew batch compress ~/archive --target 20000 --out short")
def compress_archive(
    paths: Paths,
    target: TargetTokens,
    out: Out,
    model: Model = "",
    preset: PresetName = "default",
    processes: Processes = None,
    as_json: AsJson = False,
) -> None:
    """Make each conversation fit a number of tokens, without asking a model.

    A record has the messages as they would be sent, and for each recall id in them the items that it stands for.
    """
    from clew.batch import BatchCompress

    _check_preset(preset)
    _done(BatchCompress(target, model, preset), paths, out, processes, as_json)


@batch.command("search", epilog="""Example: clew batch search 'connection "pool size"' ~/archive --out found""")
def search_archive(
    text: Annotated[str, typer.Argument(metavar="TEXT", help='Words that one message has, all of them; "a phrase".')],
    paths: Paths,
    out: Out,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Hits of a conversation to write; all count.")] = 20,
    processes: Processes = None,
    as_json: AsJson = False,
) -> None:
    """Find the messages that have all these words, in any order and in capitals or not.

    Only conversations with a hit have a record.
    """
    from clew.batch import BatchSearch

    act = BatchSearch(text, limit)
    if not act.words:
        raise typer.BadParameter("TEXT: give at least one word")
    _done(act, paths, out, processes, as_json)
    if not as_json:
        _hits(out)


# --- a run ------------------------------------------------------------------------------------------------------------


def _check_preset(name: str) -> None:
    from clew.errors import BadRequest
    from clew.steps import preset

    try:
        preset(name)
    except BadRequest as error:
        raise typer.BadParameter(f"--{error}") from None


def _done(act: "BatchAct", paths: list[Path], out: Path, processes: int | None, as_json: bool) -> None:
    from dataclasses import asdict

    from clew.batch import begin, finish

    run = begin(act, paths, out)
    try:
        with bar(run) as progress:
            totals = finish(run, processes or os.cpu_count() or 1, progress)
    except KeyboardInterrupt:
        _, done = run.left()
        typer.echo(f"\nstopped: {len(done):,} of {len(run.tasks):,} parts are done; the same command goes on", err=True)
        raise typer.Exit(130) from None
    if as_json:
        echo_json(asdict(totals))
    else:
        _tell(totals, out)


def _tell(totals: "BatchTotals", out: Path) -> None:
    from clew.screens.lines import count, volume

    made = f"{count(totals.conversations, 'conversation')}, {count(totals.records, 'record')}"
    sizes = f"{volume(totals.bytes_in)} read, {volume(totals.bytes_out)} written"
    if totals.tokens_before:
        less = 1 - totals.tokens_after / totals.tokens_before
        typer.echo(f"{totals.tokens_before:,} → {totals.tokens_after:,} tokens, {less:.0%} less")
    typer.echo(printable(f"{made}; {sizes}, {totals.cpu_seconds:,.1f} s of CPU"))
    typer.echo(printable(f"{out / 'parts'} · digest {totals.digest[:16]}"))
    if totals.failures:
        typer.echo(printable(f"{count(totals.failures, 'failure')}: {out / 'failures.jsonl'}"), err=True)


def _hits(out: Path) -> None:
    """The first hits, as far as a screen goes."""
    from clew.core import rawjson
    from clew.screens.lines import words

    left = HITS
    for part in sorted((out / "parts").glob("*.jsonl")):
        with part.open("rb") as lines:
            for line in lines:
                record = rawjson.loads(line)
                for hit in record["found"][:left]:
                    place = f"{record['id']} message {hit['message']}, {hit['role']}, line {hit['line']}"
                    typer.echo(f"{printable(place)}\n    {words(hit['excerpt'])}")
                left -= len(record["found"][:left])
                if not left:
                    typer.echo("more are in the records")
                    return


@contextmanager
def bar(run: "Run") -> Iterator["TasksProgress"]:
    """A bar with bytes, conversations, their rate and the time that is left; without a terminal, nothing."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    left, before = run.left()
    bytes_before = run.bytes - sum(one.bytes for one in left)

    class TimeLeft(ProgressColumn):
        """By the mean of this run: tasks take long, so the last few say little."""

        def render(self, task: Task) -> Text:
            done = task.completed - bytes_before
            if not done or task.total is None:
                return Text("-:--:--")
            return Text(str(timedelta(seconds=int((task.elapsed or 0) * (task.total - task.completed) / done))))

    columns = (
        TextColumn(run.job.act.name),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
    )
    count, failed = sum(one.conversations for one in before), sum(len(one.failures) for one in before)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        # What was done before counts, but not for the rate.
        task = shown.add_task("", total=run.bytes, completed=bytes_before, told="")
        new = 0

        def advance(done: "TaskDone") -> None:
            nonlocal new, failed
            new, failed = new + done.conversations, failed + len(done.failures)
            rate = new / max(0.001, shown.tasks[0].elapsed or 0.001)
            wrong = f", {failed:,} failed" if failed else ""
            shown.update(task, advance=done.bytes_in, told=f"{count + new:,} conversations, {rate:,.0f}/s{wrong}")

        yield advance
