"""What a continuation pays for where its hypothesis looks in the source: for beginning a term while
it looks elsewhere, and for saying something else while it looks at a term that is still to be said.
Knows numbers and the tree of terms; nothing of the search.

Shapes: B sentences, K beams, C terms, E edges; see term_tree.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.term_tree import Tree

# The price of beginning a term, times the logarithm of the attention to it, which counts as
# _LEAST at least.
_ELSEWHERE = 2.0
_ELSEWHERE_AGAIN = 4.0
_LEAST = 0.05
# The price of another token while a term is looked at, times the attention to it: where there is
# one term, where there are several, and of a term that occurs several times. The more there is to
# say, the likelier it is put off to the end, where to repeat a form costs little.
_PASSED = 2.0
_PASSED_OF_SEVERAL = 6.0
_PASSED_AGAIN = 20.0


def prices(tree: Tree, looked: Tensor, n_free: int) -> Tensor:
    """Return what each continuation pays, (B, K, n_free + E), those that stay free first.

    looked (B, K, C) is how much each hypothesis looks at terms that it has not said.
    """
    of_free = _passing(tree, looked)
    of_free = of_free.expand(-1, -1, n_free)
    of_edges = _beginning(tree, looked)
    return torch.cat([of_free, of_edges], -1)


def _beginning(tree: Tree, looked: Tensor) -> Tensor:
    """(B, K, E) the price of beginning a term while looking elsewhere; 0 inside of a form."""
    serves = tree.rest.isfinite()
    serves = serves[:, None]  # (B, 1, E, C)
    there = looked[:, :, None]
    there = there.masked_fill(~serves, 0.0)
    there = there.amax(-1)  # (B, K, E)
    there = there.clamp(min=_LEAST)
    repeated = _repeated(tree)
    repeats = serves & repeated[:, :, None]
    repeats = repeats.any(-1)  # (B, 1, E)
    price = torch.where(repeats, _ELSEWHERE_AGAIN, _ELSEWHERE)
    elsewhere = -price * there.log()
    at_root = tree.parent == 0
    begins = at_root[:, None] & serves.any(-1)
    return elsewhere.masked_fill(~begins, 0.0)


def _passing(tree: Tree, looked: Tensor) -> Tensor:
    """(B, K, 1) the price of another token while a term is looked at."""
    n_terms = tree.counts[:, 1:].sum(-1)
    is_several = n_terms[:, None, None] > 1
    price = torch.where(is_several, _PASSED_OF_SEVERAL, _PASSED)
    price = torch.where(_repeated(tree), _PASSED_AGAIN, price)
    passed = price * looked
    return passed.amax(-1, keepdim=True)


def _repeated(tree: Tree) -> Tensor:
    """(B, 1, C) whether the term is to be said several times."""
    is_repeated = tree.counts > 1
    return is_repeated[:, None]
