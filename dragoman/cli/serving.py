"""The `serve` and `add-key` commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import Machine, with_flags
from dragoman.errors import MissingDependencyError, OptionError

commands = typer.Typer()


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
        Path | None,
        typer.Option(
            help="File to keep the corrections of readers in. Default: corrections.sqlite in the "
            "user's data folder, if only this machine or holders of a key reach the service."
        ),
    ] = None
    no_corrections: Annotated[
        bool, typer.Option("--no-corrections", help="Keep no corrections.")
    ] = False
    learn: Annotated[
        str | None,
        typer.Option(
            help="Let the models learn from the corrections once a day, in the background: daily "
            "(at 03:00), or a time such as 22:30. Needs --corrections."
        ),
    ] = None
    glossary: Annotated[
        Path | None,
        typer.Option(help="Terms for requests that bring none: a .tsv, .csv or .tbx file."),
    ] = None
    glossaries: Annotated[
        Path | None,
        typer.Option(
            help="File to keep the glossaries in that DeepL's clients store. Default: in memory."
        ),
    ] = None
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name under which clients reach the server, such as translate.example.org; its "
            "own addresses and localhost are known. May be repeated."
        ),
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of a reverse proxy whose X-Forwarded-For is believed. May be repeated."
        ),
    ] = None
    processes: Annotated[
        int,
        typer.Option(
            min=1, max=256, help="Server processes behind the port, each with models of its own."
        ),
    ] = 1
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
    """Serve models over HTTP: a web page, the APIs of LibreTranslate, DeepL and OpenAI's chats, and
    a richer one, described at /docs.

    SIGHUP reloads models and keys without dropping a request. SIGTERM and Ctrl-C finish the
    requests that were accepted. With --processes N, as many processes share the port, the cores and
    all that clients have stored.

    Example: `dragoman serve models/en-de models/de-en --port 5000`
    """
    from dragoman.cli.running_service import Plan, serve_by_many, serve_here
    from dragoman.folder.shipped import shipped_folders

    _check_extra()
    folders = models or shipped_folders()
    if not folders:
        raise OptionError(
            "no model is named and none is bundled; name a model folder, such as models/en-de"
        )
    _check_learning(service)
    plan = Plan(address, service, machine, folders)
    if service.processes == 1:
        serve_here(plan)
    else:
        raise typer.Exit(serve_by_many(plan))


def _check_extra() -> None:
    try:
        import dragoman.server.app  # noqa: F401
    except ModuleNotFoundError:
        raise MissingDependencyError.for_extra("serving", "serve") from None


def _check_learning(service: Service) -> None:
    """Refuse, before anything is loaded, a schedule that cannot be kept."""
    if service.learn is None:
        return
    from dragoman.server.learning_schedule import time_of_day

    time_of_day(service.learn)
    if service.corrections is None:
        raise OptionError(
            "--learn needs the corrections to learn from; add --corrections with a file"
        )


@commands.command(rich_help_panel="Serve")
def add_key(
    file: Annotated[Path, typer.Argument(help="File of keys; it holds hashes only.")],
    name: Annotated[str, typer.Argument(help="Owner of the key; the owner `admin` may reload.")],
    per_minute: Annotated[
        int, typer.Option(min=0, help="Requests per minute; 0 for the limit of the server.")
    ] = 0,
) -> None:
    """Make an API key and print it, once.

    To revoke a key, remove its line from the file and send the server a SIGHUP.

    Example: `dragoman add-key keys.txt anna --per-minute 60`
    """
    from dragoman.server.guard import add_key as add

    print(add(file, name, per_minute))
