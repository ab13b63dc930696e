"""What is exchanged in a model that is trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.kernels import dropout, packed_model
from dragoman.kernels.exchange import Twin, exchange
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.model_config import ModelConfig


def accelerate_training(model: nn.Module, device: torch.device, packed: bool = False) -> Tensor:
    """Make a model fast to train on this device, and return the seeds of its dropouts.

    If `packed`, its attention is for sentences that lie end to end, as `packed_features` has them,
    and for nothing else.
    """
    any_config = ModelConfig()  # no twin for training depends on it
    twins = TRAINING + PACKED if packed else TRAINING
    exchange(model, [twin for twin in twins if twin.fits(device, any_config)])
    return dropout.sow(model, device)


def _anywhere(device: torch.device, config: ModelConfig) -> bool:
    return True


def _on_cpu(device: torch.device, config: ModelConfig) -> bool:
    return device.type == "cpu"


def _on_gpu(device: torch.device, config: ModelConfig) -> bool:
    return device.type != "cpu"


TRAINING = (
    Twin(nn.Dropout, "forward", dropout.drop_by_fours, _on_cpu),
    Twin(nn.Dropout, "forward", dropout.drop_by_hash, _on_gpu),
)
PACKED = (Twin(MultiHeadAttention, "forward", packed_model.attend, _anywhere),)
