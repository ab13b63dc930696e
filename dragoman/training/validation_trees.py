"""How good a parser is on trees that were held out: their loss, and F1 of greedy trees."""

from __future__ import annotations

from dataclasses import replace

import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError
from dragoman.model.transformer import Transformer
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.tasks.bracket_scores import BracketScores, score_trees
from dragoman.tasks.parse import OPTIONS, Parser
from dragoman.text.trees import Tree, fault
from dragoman.training.validation import Measured, Scored, ValidPairs

_GREEDY = replace(OPTIONS, beam=1)
_BEAM = replace(OPTIONS, beam=4)  # the 21 of `dragoman parse` take five times as long


class ValidTrees(ValidPairs):
    """Held-out trees: as tokens for the loss, and the first as trees for scores."""

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss, and F1 of greedy trees."""
        metrics = {"valid_loss": self.loss(model, device)}
        if not self.sources:
            return metrics, ()
        outputs, scores = self._parsed(model, device, _GREEDY)
        metrics["f1"] = scores.f1
        return metrics, self.shown(outputs)

    def scores(self, model: Transformer, device: torch.device) -> Scored | None:
        """F1 and more by beam search, with an interval; None where no sentences are parsed."""
        if not self.sources:
            return None
        outputs, scores = self._parsed(model, device, _BEAM)
        return Scored(
            heading=f"On {self.sentences:,} valid sentences, beam {_BEAM.beam}:",
            lines=tuple(scores.lines()),
            samples=self.shown(outputs),
        )

    def _parsed(
        self, model: Transformer, device: torch.device, options: SearchOptions
    ) -> tuple[list[str], BracketScores]:
        facts = TokenFacts(self.description.frame, self.tokenizer.joins())
        parser = Parser(TorchRuntime(model, device, facts), self.tokenizer, self.description)
        gold = [self._gold(row) for row in range(len(self.sources))]
        parses = parser.parse_words([tree.words for tree in gold], options)
        trees = [parse.tree for parse in parses]
        outputs = ["" if tree is None else " ".join(tree.symbols) for tree in trees]
        return outputs, score_trees(trees, gold)

    def _gold(self, row: int) -> Tree:
        words = tuple(self.sources[row].split(" "))
        symbols = tuple(self.references[row].split(" "))
        wrong = fault(symbols, len(words))
        if wrong:
            raise ModelFolderError(f"the prepared valid set is damaged: tree {row + 1:,} {wrong}")
        return Tree(words, symbols)
