"""A service that runs, in one process or in several behind one port. Knows what the flags of
`serve` mean; what a process does is known to server/."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.terminal import say
from dragoman.errors import DragomanError, OptionError

if TYPE_CHECKING:
    from dragoman.cli.arguments import Machine
    from dragoman.cli.serving import Address, Service
    from dragoman.server.corrections import Corrections
    from dragoman.server.fleet import Fleet
    from dragoman.server.processes import Part
    from dragoman.server.shared_folder import SharedFolder

_BACKLOG = 2048  # connections that the system holds until they are accepted


@dataclass(frozen=True)
class Plan:
    """All that a process needs to know to serve."""

    address: Address
    service: Service
    machine: Machine
    folders: list[Path]


def serve_here(plan: Plan) -> None:
    """Serve in this process."""
    _serve_in(plan, _listen(plan.address))


def serve_by_many(plan: Plan) -> int:
    """Serve with several processes; return the exit code."""
    from dragoman.server.processes import Processes, divide_threads
    from dragoman.server.shared_folder import shared_folder

    divide_threads(plan.service.processes)
    with _listen(plan.address, shared=True) as reserved, shared_folder() as shared:
        _say_where_corrections_are(plan)
        port = reserved.getsockname()[1]
        here = replace(plan, address=replace(plan.address, port=port))
        processes = Processes(plan.service.processes, _serve_as_part, (here, shared))
        count = plan.service.processes
        return processes.run(lambda: say(f"{_open(reserved)}; {count} processes serve"))


def _serve_as_part(plan: Plan, shared: SharedFolder, part: Part) -> None:
    """What a process of several runs."""
    from dragoman.server.processes import hold_reloads, leave_with_parent, share

    hold_reloads()
    leave_with_parent()
    try:
        listener = share((plan.address.host, plan.address.port), _kind(plan.address.host))
        _serve_in(plan, listener, Sharing(shared, part))
    except DragomanError as error:
        say(f"error: {error}")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while the models were loaded
        raise SystemExit(130) from None


@dataclass(frozen=True)
class Sharing:
    """What a process has in common with others."""

    folder: SharedFolder
    part: Part


def _serve_in(plan: Plan, listener: socket.socket, sharing: Sharing | None = None) -> None:
    """Load the models and serve in this process."""
    from dragoman.config import assignments, build
    from dragoman.server.app import create_app
    from dragoman.server.connections import Bounds
    from dragoman.server.fleet import Fleet
    from dragoman.server.glossary_store import GlossaryStore
    from dragoman.server.guard import Guard, Limits
    from dragoman.server.hosts import Hosts
    from dragoman.server.listening import serve_on
    from dragoman.tasks.translate import Translator
    from dragoman.text.glossary import Glossary

    service = plan.service
    limits = build(Limits, assignments(Limits, service.set_ or []))
    bounds = Bounds(limits, service.trusted_proxy or ())
    guard = Guard(limits, service.keys, Hosts(service.allowed_host or ()))
    kept, where = _open_corrections(plan.address, service)
    terms = Glossary.load(service.glossary) if service.glossary else None
    folder = sharing.folder if sharing else None
    stored = GlossaryStore(
        service.glossaries or (folder.glossaries if folder else None), shared=folder is not None
    )

    def load(folder: Path) -> Translator:
        return Translator.load(folder, plan.machine.device, plan.machine.runtime)

    try:
        fleet = Fleet(plan.folders, load, limits.queue, kept, terms)
        with _learning(plan, fleet, sharing):
            listener.listen(_BACKLOG)  # from here on a client waits rather than being refused
            if sharing is None:
                say(f"{where}\n{_open(listener)}" if where else _open(listener))
            else:
                sharing.part.is_ready()
            app = create_app(fleet, guard, service.log_text, stored, folder)
            serve_on(listener, app, bounds)
    finally:
        if kept is not None:
            kept.close()


def _say_where_corrections_are(plan: Plan) -> None:
    """Open the file of corrections once before the processes do, to say where it is and what is
    wrong with it."""
    kept, where = _open_corrections(plan.address, plan.service)
    if kept is not None:
        kept.close()
    if where:
        say(where)


@contextlib.contextmanager
def _learning(plan: Plan, fleet: Fleet, sharing: Sharing | None) -> Iterator[None]:
    """While the service runs, its models learn once a day, if that is wanted: in the first of its
    processes, which then lets all of them read the models again."""
    service = plan.service
    is_first = sharing is None or sharing.part.number == 0
    if service.learn is None or service.corrections is None or not is_first:
        yield
        return
    from dragoman.server.learning_schedule import LearnSchedule, time_of_day
    from dragoman.server.processes import reload_others

    due = time_of_day(service.learn)
    reload = fleet.reload if sharing is None else reload_others
    schedule = LearnSchedule(plan.folders, service.corrections, due, reload)
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


def _listen(address: Address, shared: bool = False) -> socket.socket:
    """A socket at this address, taken before the models are loaded, so that an address that cannot
    be had is known at once."""
    from dragoman.server.processes import reserve

    if not 0 <= address.port <= 65_535:
        raise OptionError(f"port is {address.port}; it must be from 0 to 65535")
    try:
        if shared:
            return reserve((address.host, address.port), _kind(address.host))
        return _alone(address)
    except OSError as error:
        raise OptionError(_no_address(address, error)) from None


def _alone(address: Address) -> socket.socket:
    listener = socket.socket(_kind(address.host))
    if os.name != "nt":  # where it would let two programs have one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError:
        listener.close()
        raise
    return listener


def _kind(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _no_address(address: Address, error: OSError) -> str:
    where = f"port {address.port} of {address.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use by another program; name another with --port"
    if error.errno == errno.EACCES:
        return f"{where} is not open to this user; name one above 1023 with --port"
    return f"cannot listen at {where} ({error.strerror}); name another --host or --port"


def _open(listener: socket.socket) -> str:
    return f"open {_url(listener)} in a browser; Ctrl-C stops the service"


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # every address of this machine, of which this is one
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
