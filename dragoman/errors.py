"""What can go wrong for a user. Every message names what was given, what was expected and what
to do."""


class DragomanError(Exception):
    """Base of every error that is the user's to mend; the command line prints it as one sentence
    and exits with 2."""


class OptionError(DragomanError):
    """An option that does not exist, has a wrong value or does not go with another."""


class InputError(DragomanError):
    """A text file that cannot be used as it is."""


class ModelFolderError(DragomanError):
    """A folder that is not a model folder, or is damaged, or comes from a newer version."""


class TrainingError(DragomanError):
    """A run that cannot go on: no space left, a loss that is no number, too little memory."""


class FullDiskError(DragomanError):
    """A file that cannot be written: the disk, a quota or a limit on the size of files is full."""


class MissingDependencyError(DragomanError):
    """A feature whose optional package is not installed."""
