"""The processes in which a service has documents read, so that no document can stop it. Knows
processes, their limits and how they are asked; nothing of HTTP and of what is in a document."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

from dragoman.documents.document_frames import receive, receive_json, send, send_json
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.document_worker import CPU_SECONDS, TEXTS, TOO_LONG, TOO_MUCH
from dragoman.errors import DragomanError, InputError, MissingDependencyError
from dragoman.tasks.translation import Translation

DEADLINE = 2.0 * CPU_SECONDS  # seconds by the clock, for a process that others slow down
_AT_ONCE = 2  # processes
_MOST_QUESTIONS = 200  # of one process, whose memory may be in pieces by then
_NO_SETTINGS = DocumentSettings()
_RUN = "from dragoman.documents.document_worker import main; main()"


class DocumentTooLargeError(DragomanError):
    """A document that has too much text, or takes too much time or memory to read."""


@dataclass(frozen=True)
class Sent:
    """A document that was sent."""

    name: str  # whose ending tells its kind
    data: bytes


class DocumentWorkers:
    """Processes that read documents: started when they are needed, ended when a document is too
    much for one."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._idle: list[_Process] = []

    async def texts(
        self, documents: Sequence[Sent], most: int, settings: DocumentSettings = _NO_SETTINGS
    ) -> list[str]:
        """Return the texts of documents that are to be translated, of so many characters."""
        try:
            frames = await self._ask(_Question(TEXTS, documents, most, {}, settings))
        except _TooLongError:
            raise DocumentTooLargeError(
                f"a document may have {most:,} characters; send it in parts"
            ) from None
        return [frame.decode() for frame in frames]

    async def translated(
        self,
        documents: Sequence[Sent],
        translations: Mapping[str, Translation],
        settings: DocumentSettings = _NO_SETTINGS,
    ) -> list[bytes]:
        """Return the documents with the translations of their texts in their place."""
        return await self._ask(_Question("documents", documents, 0, translations, settings))

    def close(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.pop().kill()

    async def _ask(self, question: _Question) -> list[bytes]:
        async with self._turns:
            process = self._idle.pop() if self._idle else await asyncio.to_thread(_Process)
            try:
                frames = await asyncio.to_thread(process.answer, question)
            except (DragomanError, _TooLongError):
                self._keep(process)
                raise
            except BaseException:  # also where the client has gone
                process.kill()
                raise
            self._keep(process)
            return frames

    def _keep(self, process: _Process) -> None:
        if process.is_usable:
            self._idle.append(process)
        else:
            process.kill()


@dataclass(frozen=True)
class _Question:
    ask: str
    documents: Sequence[Sent]
    most: int  # characters
    translations: Mapping[str, Translation]
    settings: DocumentSettings

    def send_to(self, stream: BinaryIO) -> None:
        names = [document.name for document in self.documents]
        head = {
            "ask": self.ask,
            "names": names,
            "most": self.most,
            "answers": len(self.translations),
            "settings": self.settings.as_json(),
        }
        send_json(stream, head)
        for document in self.documents:
            send(stream, document.data)
        for text, translation in self.translations.items():
            send_json(stream, [text, translation.text, translation.alignment])
        stream.flush()


class _TooLongError(Exception):
    """The documents have more characters than they may have."""


class _Process:
    """A process that answers one question at a time."""

    def __init__(self) -> None:
        # As this process finds modules, so does that one; a folder that it happens to be started in
        # is not among them.
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _RUN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the service to answer
        )
        self._questions = cast(BinaryIO, self._process.stdin)
        self._answers = cast(BinaryIO, self._process.stdout)
        self._asked = 0
        self._broken = False

    @property
    def is_usable(self) -> bool:
        return not self._broken and self._asked < _MOST_QUESTIONS

    def kill(self) -> None:
        """End the process; whoever waits for its answer gets an error."""
        self._broken = True
        self._process.kill()
        self._process.wait()

    def answer(self, question: _Question) -> list[bytes]:
        """Return the frames of the answer, or raise what is wrong with the documents."""
        self._asked += 1
        deadline = threading.Timer(DEADLINE, self._process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            question.send_to(self._questions)
            head = receive_json(self._answers)
            frames = [receive(self._answers) for _ in range(head.get("count", 0))]
        except (EOFError, OSError):
            self._broken = True
            raise _exhausted(question) from None
        finally:
            deadline.cancel()
        if "error" in head:
            self._broken = head["error"] == TOO_MUCH
            raise _refusal(question, head["error"], head.get("sentence", ""))
        return frames


def _refusal(question: _Question, error: str, sentence: str) -> Exception:
    if error == TOO_LONG:
        return _TooLongError()
    if error == InputError.__name__:
        return InputError(sentence)
    if error == MissingDependencyError.__name__:
        return MissingDependencyError(sentence)
    return _exhausted(question)


def _exhausted(question: _Question) -> DocumentTooLargeError:
    name = question.documents[0].name
    return DocumentTooLargeError(
        f"{name} takes more time or memory to read than a document may; send it in parts"
    )
