"""The `parse` command, and the part of `evaluate` that is about trees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import Machine, with_flags
from dragoman.cli.terminal import lines_of, print_json, say

if TYPE_CHECKING:
    from dragoman.tasks.bracket_scores import BracketScores, TreeComparison
    from dragoman.tasks.parse import Parse
    from dragoman.text.trees import Tree

commands = typer.Typer()
_MOST_DRAWN = 20  # trees of one picture


@dataclass(frozen=True)
class Sentences:
    """What is parsed, and by which model."""

    model: Annotated[
        Path,
        typer.Option("--model", "-m", help="Model folder that `dragoman train --task parse` made."),
    ]
    file: Annotated[
        Path | None,
        typer.Argument(help="Text file, one sentence a line. Default: standard input."),
    ] = None
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized", help="The words are separated by spaces already, as in a treebank."
        ),
    ] = False


@dataclass(frozen=True)
class Output:
    """How trees are printed."""

    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            "--json",
            help="Print a JSON object per sentence: words, tags, tree, constituents.",
        ),
    ] = False
    draw: Annotated[bool, typer.Option("--draw", help="Draw each tree in the terminal.")] = False
    svg: Annotated[
        Path | None, typer.Option(help="Also draw the first 20 trees into this .svg file.")
    ] = None


@dataclass(frozen=True)
class TreeSearch:
    """How a tree is searched for."""

    beam: Annotated[
        int, typer.Option(min=1, help="Hypotheses kept at each step; 1 is greedy, and fastest.")
    ] = 21
    alpha: Annotated[float, typer.Option(min=0.0, help="Exponent of the length penalty.")] = 0.3


@commands.command(rich_help_panel="Other tasks")
@with_flags
def parse(sentences: Sentences, output: Output, search: TreeSearch, machine: Machine) -> None:
    """Parse sentences: print the constituency tree of each, one a line, in brackets.

    A line is one sentence. An empty line stays empty, and so does one that is too long for the
    model, of which a message tells. Every tree is well-formed and has the sentence's words.

    Example: `dragoman parse -m models/parser < sentences.txt > trees.mrg`, or
    `echo "Rain falls." | dragoman parse -m models/parser --draw`
    """
    from dragoman.folder.files import check_file_place, write_file
    from dragoman.inspection.tree_drawing import as_rows, as_svg
    from dragoman.tasks.parse import Parser, with_beam

    if output.svg is not None:
        check_file_place(output.svg)
    options = with_beam(search.beam, search.alpha)
    parser = Parser.load(sentences.model, machine.device, machine.runtime)
    drawn: list[Tree] = []
    lines = lines_of(sentences.file)
    for number, one in enumerate(parser.stream(lines, options, sentences.tokenized), 1):
        if one.tree is None and one.problem and not one.is_empty:
            say(f"line {number:,}: {one.problem}")
        elif one.tree is not None and len(drawn) < _MOST_DRAWN:
            drawn.append(one.tree)
        if output.jsonl:
            print_json(_as_dict(one))
        elif output.draw:
            print("\n".join(as_rows(one.tree)) if one.tree else "", flush=True)
        else:
            print(one.tree.bracketed() if one.tree else "", flush=True)
    if output.svg is not None:
        write_file(output.svg, as_svg(drawn).encode())


@dataclass(frozen=True)
class TreeScores:
    """What `evaluate` finds out about a parser."""

    folder: Path
    scores: BracketScores
    comparison: TreeComparison | None = None  # with another parser


def evaluate_trees(
    folder: Path, files: list[str], search: TreeSearch, machine: Machine, against: Path | None
) -> TreeScores:
    """Parse the sentences of a treebank and count how well the trees match; `against` is another
    parser's folder, or a file of its trees."""
    from dragoman.data.treebank import read_all_trees, read_trees
    from dragoman.tasks.bracket_scores import compare_trees, score_trees
    from dragoman.tasks.parse import Parser, with_beam

    gold = read_all_trees(files)

    def parsed(model: Path) -> list[Tree | None]:
        parser = Parser.load(model, machine.device, machine.runtime)
        options = with_beam(search.beam, search.alpha)
        parses = parser.parse_words([tree.words for tree in gold], options)
        return [one.tree for one in parses]

    others: list[Tree | None] = []
    if against is not None and not against.is_dir():
        others = list(read_trees(str(against)))
    trees = parsed(folder)
    scores = score_trees(trees, gold)
    if against is None:
        return TreeScores(folder, scores)
    if against.is_dir():
        others = parsed(against)
    return TreeScores(folder, scores, compare_trees(trees, others, gold))


def print_scores(found: TreeScores, as_json: bool) -> None:
    """Print the scores of a parser, and its comparison with another if there is one."""
    result: dict[str, Any] = {"model": str(found.folder), **found.scores.as_dict()}
    lines = found.scores.lines()
    if found.comparison is not None:
        result["against"] = found.comparison.as_dict()
        lines.append(found.comparison.verdict)
    if as_json:
        print_json(result)
    else:
        print("\n".join(lines))


def _as_dict(one: Parse) -> dict[str, Any]:
    """Plain values of one sentence; `tree` is null where there is none."""
    if one.tree is None:
        return {"words": [], "tree": None, "problem": one.problem}
    constituents = []
    for label, start, end in one.tree.constituents():
        constituents.append({"label": label, "start": start, "end": end})
    return {
        "words": list(one.tree.words),
        "tags": list(one.tree.tags),
        "tree": one.tree.bracketed(),
        "constituents": constituents,
        "score": one.score,
    }
