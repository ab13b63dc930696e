"""Blocks of running text, plain and masked, and images that are moved about: what follows from
what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.data.batches import Batch, Draw
from dragoman.data.blocks import Blocks, Masking, map_tokens
from dragoman.data.images import Images
from dragoman.text.tokenizer import Frame

END = 3
MASK = 4
PIECES = 500
FRAME = Frame(source_start=(2,))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Numbers from 100 on, with an end behind every ninth."""
    tokens = np.arange(100, 100 + 330)
    tokens[9::10] = END
    tokens.astype("<u2").tofile(tmp_path / "tokens.bin")
    return tmp_path / "tokens.bin"


def blocks_of(
    file: Path,
    draw: Draw | None = None,
    masking: Masking | None = None,
) -> Blocks:
    return Blocks(map_tokens(file, "<u2"), 32, FRAME, draw, masking)


def test_blocks_lie_end_to_end(file: Path) -> None:
    blocks = blocks_of(file)
    tokens = np.fromfile(file, "<u2")
    batch = blocks.batch(np.array([0, 3]))
    assert len(blocks) == 10
    assert [side.tolist() for side in blocks.lengths(np.array([0, 3]))] == [[32, 32]] * 2
    assert batch.labels.tolist() == [*tokens[:32], *tokens[96:128]]
    assert batch.target.tolist() == [[2, *tokens[:31]], [2, *tokens[96:127]]]
    assert batch.positions.tolist() == list(range(64))


def test_an_epoch_begins_somewhere_else_and_sees_as_much(file: Path) -> None:
    tokens = np.fromfile(file, "<u2").tolist()
    firsts = set()
    for epoch in range(4):
        rows = np.arange(10)
        labels = blocks_of(file, Draw(7, epoch)).batch(rows).labels.tolist()
        first = tokens.index(labels[0]) if labels[0] != END else tokens.index(labels[1]) - 1
        assert labels == (tokens + tokens)[first : first + 320]
        again = blocks_of(file, Draw(7, epoch)).batch(rows).labels.tolist()
        assert labels == again
        firsts.add(first)
    assert len(firsts) > 1


def masked(file: Path, draw: Draw | None, rows: list[int]) -> Batch:
    return blocks_of(file, draw, Masking(MASK, PIECES)).batch(np.array(rows))


def test_what_is_masked(file: Path) -> None:
    """15% of 31 tokens are 5 (4.65), none of them an end; where nothing was masked all is as it
    was."""
    plain = np.fromfile(file, "<u2").astype(np.int64)
    kinds = np.zeros(3)
    for epoch in range(40):
        batch = masked(file, Draw(1, epoch), list(range(10)))
        source = batch.source.numpy()
        positions = batch.positions.numpy().reshape(10, 5)
        labels = batch.labels.numpy().reshape(10, 5)
        assert (source[:, 0] == 2).all()
        assert (positions // 32 == np.arange(10)[:, None]).all()
        assert all(len(set(row)) == 5 for row in positions.tolist())
        assert END not in labels
        there = source.ravel()[positions]
        restored = source.copy()
        restored.ravel()[positions] = labels
        starts_alike = (plain == restored[0, 1]) & (np.roll(plain, -1) == restored[0, 2])
        first = np.flatnonzero(starts_alike)[0]
        expected = np.take(plain, first + np.arange(310), mode="wrap")
        assert (restored[:, 1:].ravel() == expected).all()
        kinds += (
            (there == MASK).sum(),
            (there == labels).sum(),
            ((there != MASK) & (there != labels)).sum(),
        )
    assert kinds / kinds.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.02)


def test_masks_follow_from_seed_epoch_and_row(file: Path) -> None:
    """Not from which rows stand beside each other, so that any number of processes has the same;
    and each epoch has its own."""

    def sources(draw: Draw | None, rows: list[int]) -> list[list[int]]:
        return masked(file, draw, rows).source.tolist()

    assert sources(Draw(1, 2), [5, 0])[0] == sources(Draw(1, 2), [5])[0]
    assert sources(None, [0, 1]) == sources(None, [0, 1])
    assert len({str(sources(Draw(1, epoch), [0])) for epoch in range(5)}) == 5


@pytest.mark.parametrize("flip", [False, True])
def test_images_are_shifted_and_mirrored(tmp_path: Path, flip: bool) -> None:
    """The one bright point of each shows by how much: at most 2 of 16 pixels, and on the other
    side where mirrored."""
    pixels = np.zeros((200, 3, 16, 16), np.uint8)
    pixels[:, :, 5, 4] = 255
    pixels.tofile(tmp_path / "images.bin")
    np.arange(200, dtype="<i8").tofile(tmp_path / "labels.bin")
    still = Images(tmp_path, 16, 65, flip, None).batch(np.array([3, 1]))
    assert still.labels.tolist() == [3, 1]
    assert (float(still.source.min()), float(still.source.max())) == (-1.0, 1.0)
    assert still.source[:, :, 5, 4].eq(1).all()
    batch = Images(tmp_path, 16, 65, flip, Draw(1, 0)).batch(np.arange(200))
    positions = [tuple(image[0].eq(1).nonzero()[0].tolist()) for image in batch.source]
    assert {down for down, _ in positions} == {3, 4, 5, 6, 7}
    near = {2, 3, 4, 5, 6}
    expected = near | {15 - right for right in near} if flip else near
    assert {right for _, right in positions} == expected
    again = Images(tmp_path, 16, 65, flip, Draw(1, 0)).batch(np.arange(200))
    assert batch.source.eq(again.source).all()
