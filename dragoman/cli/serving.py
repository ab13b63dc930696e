"""The `serve` and `add-key` commands."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import Machine, with_flags
from dragoman.cli.terminal import say
from dragoman.errors import MissingDependencyError, OptionError

if TYPE_CHECKING:
    from dragoman.server.corrections import Corrections
    from dragoman.server.fleet import Fleet

commands = typer.Typer()
_BACKLOG = 2048  # connections that the system holds until they are accepted


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
    requests that were accepted.

    Example: `dragoman serve models/en-de models/de-en --port 5000`
    """
    from dragoman.config import assignments, build
    from dragoman.folder.shipped import shipped_folders
    from dragoman.tasks.translate import Translator
    from dragoman.text.glossary import Glossary

    try:
        from dragoman.server.app import create_app
        from dragoman.server.connections import Bounds
        from dragoman.server.fleet import Fleet
        from dragoman.server.glossary_store import GlossaryStore
        from dragoman.server.guard import Guard, Limits
        from dragoman.server.hosts import Hosts
        from dragoman.server.listening import serve_on
    except ModuleNotFoundError:
        raise MissingDependencyError.for_extra("serving", "serve") from None
    folders = models or shipped_folders()
    if not folders:
        raise OptionError(
            "no model is named and none is bundled; name a model folder, such as models/en-de"
        )
    _check_learning(service)
    listener = _listen(address)
    limits = build(Limits, assignments(Limits, service.set_ or []))
    bounds = Bounds(limits, service.trusted_proxy or ())
    guard = Guard(limits, service.keys, Hosts(service.allowed_host or ()))
    kept, where = _open_corrections(address, service)
    terms = Glossary.load(service.glossary) if service.glossary else None
    stored = GlossaryStore(service.glossaries)

    def load(folder: Path) -> Translator:
        return Translator.load(folder, machine.device, machine.runtime)

    try:
        fleet = Fleet(folders, load, limits.queue, kept, terms)
        with _learning(service, folders, fleet):
            listener.listen(_BACKLOG)  # from here on a client waits rather than being refused
            if where:
                say(where)
            say(f"open {_url(listener)} in a browser; Ctrl-C stops the service")
            serve_on(listener, create_app(fleet, guard, service.log_text, stored), bounds)
    finally:
        if kept is not None:
            kept.close()


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


@contextlib.contextmanager
def _learning(service: Service, folders: list[Path], fleet: Fleet) -> Iterator[None]:
    """While the service runs, its models learn once a day, if that is wanted."""
    if service.learn is None or service.corrections is None:
        yield
        return
    from dragoman.server.learning_schedule import LearnSchedule, time_of_day

    due = time_of_day(service.learn)
    schedule = LearnSchedule(folders, service.corrections, due, fleet.reload)
    schedule.start()
    say(f"the models learn from corrections every day at {due:%H:%M}")
    try:
        yield
    finally:
        schedule.close()


def _open_corrections(address: Address, service: Service) -> tuple[Corrections | None, str]:
    """The corrections of readers, and a sentence for the terminal that says where they are."""
    from dragoman.server.corrections import Corrections
    from dragoman.server.corrections_place import is_for_us_alone, open_default

    if service.corrections and service.no_corrections:
        raise OptionError("--corrections and --no-corrections exclude each other; omit one")
    if service.corrections:
        return Corrections(service.corrections), ""
    if service.no_corrections:
        return None, ""
    names_others = bool(service.allowed_host or service.trusted_proxy)
    if not is_for_us_alone(address.host, service.keys is not None, names_others):
        sentence = (
            "no corrections are kept, since strangers may reach this; --corrections FILE keeps them"
        )
        return None, sentence
    return open_default()


def _listen(address: Address) -> socket.socket:
    """A socket at this address, taken before the models are loaded, so that an address that cannot
    be had is known at once."""
    if not 0 <= address.port <= 65_535:
        raise OptionError(f"port is {address.port}; it must be from 0 to 65535")
    kind = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(kind)
    if os.name != "nt":  # where it would let two programs have one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        raise OptionError(_no_address(address, error)) from None
    return listener


def _no_address(address: Address, error: OSError) -> str:
    where = f"port {address.port} of {address.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use by another program; name another with --port"
    if error.errno == errno.EACCES:
        return f"{where} is not open to this user; name one above 1023 with --port"
    return f"cannot listen at {where} ({error.strerror}); name another --host or --port"


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # every address of this machine, of which this is one
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
