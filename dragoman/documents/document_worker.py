"""The process that reads documents from strangers for a service, under limits on its time and
memory: whatever a document does to it, the service goes on.

It answers two questions, as long as its input lasts: which texts some documents have, and what the
documents are with the translations in their place. Knows documents and limits; no model and no
server.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from typing import Any, BinaryIO

from dragoman.documents.document_frames import receive, receive_json, send, send_json
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, with_answers
from dragoman.errors import DragomanError
from dragoman.text.markup_transfer import Answer

CPU_SECONDS = 30  # for each question
MEMORY = 2**30  # bytes of address space
MAX_ANSWER = 2**26  # bytes of all documents that come back
TEXTS = "texts"  # the question which texts there are
# What is answered instead, besides a sentence about a document.
TOO_LONG = "too long"
TOO_MUCH = "too much"


def main() -> None:
    """Answer questions on the standard output until there are no more on the standard input."""
    questions = sys.stdin.buffer
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not disturb the answers
    limit_process()
    gc.disable()  # which looks at all objects of a large document again and again
    with contextlib.suppress(EOFError):
        while True:
            question = receive_json(questions)
            documents = [receive(questions) for _ in question["names"]]
            known = _receive_answers(questions, question["answers"])
            _limit_time()
            _answer(answers, question, documents, known)
            answers.flush()
            del documents, known
            gc.collect()


def limit_process() -> None:
    """Give way to others, and bound the memory where the system can."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _limit_time() -> None:
    """Let the system end this process if the next question takes too much of its time."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)


def _receive_answers(stream: BinaryIO, count: int) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for _ in range(count):
        text, translation, alignment = receive_json(stream)
        answers[text] = (translation, [(source, target) for source, target in alignment])
    return answers


def _answer(
    stream: BinaryIO, question: dict[str, Any], documents: list[bytes], known: dict[str, Answer]
) -> None:
    try:
        if question["ask"] == TEXTS:
            frames = _texts(question, documents)
        else:
            frames = _translations(question, documents, known)
    except DragomanError as error:
        send_json(stream, {"error": type(error).__name__, "sentence": str(error)})
        return
    except MemoryError:
        send_json(stream, {"error": TOO_MUCH})
        return
    if frames is None:
        send_json(stream, {"error": TOO_LONG})
        return
    send_json(stream, {"count": len(frames)})
    for frame in frames:
        send(stream, frame)


def _texts(question: dict[str, Any], documents: list[bytes]) -> list[bytes] | None:
    """Return the texts of all documents, or None if they have too many characters."""
    left = question["most"]
    settings = DocumentSettings.from_json(question["settings"])
    texts: dict[str, None] = {}
    for name, data in zip(question["names"], documents, strict=True):
        own = texts_of(name, data, settings)
        left -= sum(len(text) for text in own)
        if left < 0:
            return None
        texts.update(dict.fromkeys(own))
    return [text.encode() for text in texts]


def _translations(
    question: dict[str, Any], documents: list[bytes], known: dict[str, Answer]
) -> list[bytes]:
    translated = []
    settings = DocumentSettings.from_json(question["settings"])
    left = MAX_ANSWER
    for name, data in zip(question["names"], documents, strict=True):
        translated.append(with_answers(name, data, known, settings))
        left -= len(translated[-1])
        if left < 0:
            raise MemoryError
    return translated


if __name__ == "__main__":
    main()
