"""The `corrections` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()
corrections = typer.Typer(help="Use the corrections of readers that `dragoman serve` has saved.")
commands.add_typer(corrections, name="corrections", rich_help_panel="Serve")


@corrections.command("export")
def export_corrections(
    database: Annotated[
        Path, typer.Argument(help="File in which `dragoman serve` keeps corrections.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="File to write: a .tmx or .tsv that `dragoman train` reads, or a .sqlite that "
            "`dragoman serve` reads."
        ),
    ],
) -> None:
    """Write the newest correction of each sentence as training text, or all of them as a backup.

    This is the way to back up corrections, also while the server runs: a plain copy of a file that
    is being written may be damaged. A .sqlite backup keeps everything.

    Example: `dragoman corrections export corrections.sqlite corrections.tmx`
    """
    from dragoman.server.corrections_export import export

    print(f"{export(database, out):,} corrections are in {out}")


@corrections.command("import")
def import_corrections(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Translation memories (.tmx), reviewed files of translators (.xliff, .xlf) or "
            "tables (.tsv, .jsonl)."
        ),
    ],
    database: Annotated[
        Path,
        typer.Option(
            "--corrections",
            help="File in which `dragoman serve` keeps corrections; it is made if there is none.",
        ),
    ],
    from_: Annotated[
        str, typer.Option("--from", help="Source language. Default: as the files say.")
    ] = "",
    to: Annotated[str, typer.Option(help="Target language.")] = "",
    unreviewed: Annotated[
        bool,
        typer.Option(
            "--unreviewed", help="Also use units that an XLIFF file does not mark as reviewed."
        ),
    ] = False,
) -> None:
    """Take translations by people as corrections: the service then returns them for the same
    sentences, and `dragoman learn` learns from them.

    Of an XLIFF file, the units that are approved, reviewed or final count. What is there already,
    word for word, is not saved again. All files are saved, or none.

    Example: `dragoman corrections import memory.tmx --corrections corrections.sqlite`
    """
    from datetime import UTC, datetime

    from dragoman.data.correction_files import read_corrected
    from dragoman.server.corrections import Correction, Corrections
    from dragoman.text.languages import canonical

    when = datetime.now(UTC).isoformat(timespec="seconds")
    found = []
    for file in files:
        for one in read_corrected(file, (canonical(from_), canonical(to)), unreviewed):
            sides = (one.source_language, one.target_language, one.source, one.target)
            found.append(Correction(*sides, f"imported from {file.name}", when))
    store = Corrections(database)
    try:
        saved = store.save_all(found)
    finally:
        store.close()
    print(f"{saved:,} of {len(found):,} corrections are new in {database}")
