"""The names of all files and folders in a model folder. Knows names only, and nothing about what
the files hold.

    config.json               what the model is: format version, shape, languages
    model.safetensors         its weights
    model.int8.safetensors    the same weights in int8 for the CPU; a folder that is only used for
                              translating may have these alone
    ctranslate2/              the same weights for CTranslate2
    shortlist.safetensors     the target tokens that each source token may call for
    calibration.json          what the model's certainty was worth on a validation set
    generation.json           how a speech model is steered
    tokenizer.model           SentencePiece; tokenizer.source.model and tokenizer.target.model where
                              source and target have a tokeniser each
    tokenizer/                instead, in a converted model: the tokeniser files it came with
    training.toml             the resolved options of the run
    metrics.jsonl             the run, one JSON object a line
    report.md                 the run for people, with learning-curve.svg; or the steps of an
                              improvement, with improvement.svg
    tensorboard/              the run for TensorBoard, where training.tensorboard is set
    learnt.json               of a model that learnt from corrections: its number and what was tried
    learning/                 the older text that it was tested on and kept in practice with:
                              old-valid.tsv and old-sources.txt
    state/                    what continuing the run needs:
        given.json            the options that the user gave
        lock                  held while a process trains here
        start/                the model that the run continues, itself a model folder
        data/                 the prepared text: manifest.json, report.md, train/ and valid/
        distilled/            of a student: the teacher's translations that it learns from
        step-NNNNNNNN/        the last checkpoints
        stop-NNNNNNNN/        a checkpoint that a signal caused between two of them

Beside a folder that has learnt, NAME.history holds the models that it was before, each a model
folder whose name is its number; 0000 is the one that no `dragoman learn` made.

Names that begin with a dot and end in `.partial` are unfinished writes; see files.py.
"""

from __future__ import annotations

import re

# The model.
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INT8 = "model.int8.safetensors"
SHORTLIST = "shortlist.safetensors"
CALIBRATION = "calibration.json"
GENERATION = "generation.json"
CTRANSLATE2 = "ctranslate2"
CTRANSLATE2_WEIGHTS = f"{CTRANSLATE2}/model.bin"
TOKENIZER = "tokenizer.model"
SOURCE_TOKENIZER = "tokenizer.source.model"
TARGET_TOKENIZER = "tokenizer.target.model"
FOREIGN_TOKENIZER = "tokenizer"

# The run that made it.
OPTIONS = "training.toml"
METRICS = "metrics.jsonl"
REPORT = "report.md"
CURVE = "learning-curve.svg"
IMPROVEMENT = "improvement.svg"
TENSORBOARD = "tensorboard"

# What `dragoman learn` made.
LEARNT = "learnt.json"
LEARNING = "learning"
OLD_VALID = f"{LEARNING}/old-valid.tsv"
OLD_SOURCES = f"{LEARNING}/old-sources.txt"

# What continuing the run needs.
STATE = "state"
GIVEN = f"{STATE}/given.json"
LOCK = f"{STATE}/lock"
START = f"{STATE}/start"
DATA = f"{STATE}/data"
DISTILLED = f"{STATE}/distilled"
DISTILLED_SOURCES = f"{DISTILLED}/sources.txt.gz"
DISTILLED_PAIRS = f"{DISTILLED}/pairs.tsv.gz"
DISTILLED_BEST = f"{DISTILLED}/best.tsv.gz"

# In a checkpoint, beside its WEIGHTS.
OPTIMIZER = "optimizer.safetensors"
PROGRESS = "progress.json"
CHECKPOINT = re.compile(r"(step|stop)-(\d{8})")

# In state/data, beside its REPORT.
MANIFEST = "manifest.json"
TRAIN = "train"
VALID = "valid"
SCRATCH = "scratch"

# In train/ and valid/ of state/data.
TEXT = "text.tsv"  # a pair a line, a tab between
TOKENS = "tokens.bin"
IMAGES = "images.bin"
LABELS = "labels.bin"
VALID_TEXT = f"{DATA}/{VALID}/{TEXT}"


def checkpoint(step: int, temporary: bool) -> str:
    """The name of a checkpoint's folder in state/."""
    kind = "stop" if temporary else "step"
    return f"{kind}-{step:08d}"


def history(name: str) -> str:
    """The name of the folder, beside a model folder of this name, with what that was before."""
    return f"{name}.history"


def numbered(number: int) -> str:
    """The name of a model in a history."""
    return f"{number:04d}"


def tokens(side: str) -> str:
    """The file with the tokens of all source or target sentences, end to end."""
    return f"{side}.bin"


def offsets(side: str) -> str:
    """The file that says where each sentence ends in `tokens`."""
    return f"{side}.idx"


def epoch(rank: int) -> str:
    """The folder in state/data where one process keeps the text of an epoch."""
    return f"epoch-{rank}"
