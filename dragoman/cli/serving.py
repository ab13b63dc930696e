"""The `serve`, `add-key` and `corrections` commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Machine, with_flags
from dragoman.errors import MissingDependencyError, OptionError

commands = typer.Typer()
corrections = typer.Typer(help="Use the corrections of readers that `dragoman serve` has saved.")
commands.add_typer(corrections, name="corrections", rich_help_panel="Serve")


@dataclass(frozen=True)
class Address:
    """Where the service listens."""

    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for all.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 5000


@dataclass(frozen=True)
class Service:
    """Whom the service serves, and what it keeps."""

    keys: Annotated[
        Path | None,
        typer.Option(help="Require an API key listed in this file (`dragoman add-key` makes one)."),
    ] = None
    corrections: Annotated[
        Path | None, typer.Option(help="File to keep the corrections of readers in.")
    ] = None
    log_text: Annotated[bool, typer.Option("--log-text", help="Log the text that users send.")] = (
        False
    )
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A limit, such as characters=5000 or per_minute=60."),
    ] = None


@commands.command(rich_help_panel="Serve")
@with_flags
def serve(
    address: Address,
    service: Service,
    machine: Machine,
    models: Annotated[
        list[Path] | None,
        typer.Argument(help="Model folders to serve. Default: the bundled models."),
    ] = None,
) -> None:
    """Serve models over HTTP: a web page, LibreTranslate's API and a richer one, described at
    /docs.

    SIGHUP reloads models and keys without dropping a request. SIGTERM and Ctrl-C finish the
    requests that were accepted.

    Example: `dragoman serve models/en-de models/de-en --port 5000`
    """
    from dragoman.config import assignments, build
    from dragoman.folder.shipped import shipped_folders
    from dragoman.tasks.translate import Translator

    try:
        import uvicorn

        from dragoman.server.app import create_app
        from dragoman.server.corrections import Corrections
        from dragoman.server.fleet import Fleet
        from dragoman.server.guard import Guard, Limits
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'serving needs the package {error.name}; run: pip install "dragoman[serve]"'
        ) from None
    folders = models or shipped_folders()
    if not folders:
        raise OptionError(
            "no model is named and none is bundled; name a model folder, such as models/en-de"
        )
    limits = build(Limits, assignments(Limits, service.set_ or []))
    guard = Guard(limits, service.keys)
    kept = Corrections(service.corrections) if service.corrections else None

    def load(folder: Path) -> Translator:
        return Translator.load(folder, machine.device, machine.runtime)

    fleet = Fleet(folders, load, limits.queue, kept)
    uvicorn.run(
        create_app(fleet, guard, service.log_text),
        host=address.host,
        port=address.port,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        access_log=False,
        server_header=False,
        ws="none",
        backlog=2048,
    )


@commands.command(rich_help_panel="Serve")
def add_key(
    file: Annotated[Path, typer.Argument(help="File of keys; it holds hashes only.")],
    name: Annotated[str, typer.Argument(help="Owner of the key; the owner `admin` may reload.")],
    per_minute: Annotated[
        int, typer.Option(help="Requests per minute; 0 for the limit of the server.")
    ] = 0,
) -> None:
    """Make an API key and print it, once.

    To revoke a key, remove its line from the file and send the server a SIGHUP.

    Example: `dragoman add-key keys.txt anna --per-minute 60`
    """
    from dragoman.server.guard import add_key as add

    print(add(file, name, per_minute))


@corrections.command("export")
def export_corrections(
    database: Annotated[
        Path, typer.Argument(help="File in which `dragoman serve` keeps corrections.")
    ],
    out: Annotated[
        Path, typer.Argument(help="A .tmx or .tsv file to write, which `dragoman train` reads.")
    ],
) -> None:
    """Write the newest correction of each sentence as training text.

    Example: `dragoman corrections export corrections.sqlite corrections.tmx`
    """
    from dragoman.server.corrections_export import export

    print(f"{export(database, out):,} corrections are in {out}")
