"""The commands of the service, for the command line to take up. Each imports what it needs when
it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.errors import MissingDependencyError, OptionError

commands = typer.Typer()


@commands.command()
def serve(
    models: Annotated[
        list[Path] | None, typer.Argument(help="Model folders; without them, those that came.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = 5000,
    keys: Annotated[
        Path | None, typer.Option(help="Let in only who has a key of this file; see add-key.")
    ] = None,
    corrections: Annotated[
        Path | None, typer.Option(help="The file where readers' corrections are kept.")
    ] = None,
    log_text: Annotated[
        bool, typer.Option("--log-text", help="Put the users' text into the log.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A limit, such as characters=5000 or per_minute=60."),
    ] = None,
    runtime: Annotated[
        str, typer.Option(help="auto (the fastest here), torch, int8 or ctranslate2.")
    ] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Serve models over HTTP: a web page, LibreTranslate's API and a richer one, described at
    /docs.

    A SIGHUP reads models and keys again, without dropping a request; SIGTERM and Ctrl-C finish what
    was accepted.

    Example: `dragoman serve models/en-de models/de-en --port 5000`
    """
    from dragoman.config import assignments, build
    from dragoman.folder.shipped import shipped_folders
    from dragoman.tasks.translate import Translator

    try:
        import uvicorn

        from dragoman.server import app, fleet, guard
        from dragoman.server import corrections as store
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'serving needs a package, {error.name}; run: pip install "dragoman[serve]"'
        ) from None
    if not (folders := models or shipped_folders()):
        raise OptionError(
            "no model is named and none came with dragoman; name a model folder, such as models/en-de"
        )
    limits = build(guard.Limits, assignments(guard.Limits, set_ or []))
    watch = guard.Guard(limits, keys)
    kept = store.Corrections(corrections) if corrections else None
    ships = fleet.Fleet(
        folders, lambda folder: Translator.load(folder, device, runtime), limits.queue, kept
    )
    how: dict[str, Any] = {
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "backlog": 2048,
    }
    wait = int(limits.seconds) + 1
    uvicorn.run(
        app.create_app(ships, watch, log_text),
        host=host,
        port=port,
        timeout_graceful_shutdown=wait,
        **how,
    )


@commands.command()
def add_key(
    file: Annotated[Path, typer.Argument(help="The file of keys, which holds hashes only.")],
    name: Annotated[str, typer.Argument(help="Whose key it is; that of `admin` may reload.")],
    per_minute: Annotated[
        int, typer.Option(help="Requests a minute; 0 for what the server allows.")
    ] = 0,
) -> None:
    """Make an API key and print it, once. To end it, take its line out of the file and send the
    server a SIGHUP.

    Example: `dragoman add-key keys.txt anna --per-minute 60`
    """
    from dragoman.server.guard import add_key as add

    print(add(file, name, per_minute))
