"""Documents that are translated while nobody waits at the door: their clients ask again. Knows
tasks and their bounds; nothing of HTTP and of what is in a document."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from starlette.exceptions import HTTPException

from dragoman.errors import DragomanError
from dragoman.server.metrics import log
from dragoman.server.refusals import TooManyDocumentsError, refusal_of
from dragoman.server.stored_files import StoredFile, StoredFiles

_OF_CLIENT = 4
_DOCUMENTS = 16  # each of which holds what was sent


class PendingDocuments:
    """The tasks of one service, each of which fills a stored file."""

    def __init__(self, files: StoredFiles, seconds: float) -> None:
        self._files = files
        self._seconds = seconds
        self._tasks: dict[asyncio.Task[None], str] = {}

    def check_room(self, client: str) -> None:
        """Raise where a client may not have another document translated now."""
        waiting = Counter(self._tasks.values())
        if waiting[client] >= _OF_CLIENT or waiting.total() >= _DOCUMENTS:
            raise TooManyDocumentsError(
                f"{waiting[client]} of your documents are being translated; wait for them"
            )

    def begin(self, file: StoredFile, work: Coroutine[Any, Any, tuple[bytes, int]]) -> None:
        """Fill a file with the bytes that some work returns, and their characters."""
        task = asyncio.ensure_future(self._fill(file, work))
        self._tasks[task] = file.client
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def cancel(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()

    async def _fill(self, file: StoredFile, work: Coroutine[Any, Any, tuple[bytes, int]]) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                file.data, file.characters = await work
            self._files.make_room(file)
        except TimeoutError:
            file.problem = f"not done within {self._seconds:g} seconds; send it in parts"
        except HTTPException as error:
            file.problem = error.detail
        except DragomanError as error:
            file.problem = refusal_of(error)[1]
        except Exception as error:
            file.problem = "internal server error; the log has more"
            log(event="document", error=type(error).__name__)
        self._files.publish(file)
