"""`c5 paper`: the tables and figures of the paper, ours beside the published ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from c5.choices import Selection
from c5.cli.console import console, errors, print_table, show_progress
from c5.cli.evaluate import find_methods, report_fold, typed_command
from c5.cli.options import (
    Bfloat16,
    Datasets,
    Epochs,
    Made,
    MatricesFile,
    Overwrite,
    PrintedFile,
    ResumedFolder,
    Seed,
    TestedData,
    check_free,
    write_or_print,
)
from c5.errors import DataError

if TYPE_CHECKING:
    from c5.evaluation.methods import Method, Rolls

app = typer.Typer(
    no_args_is_help=True, help="Make the tables and figures of the paper, ours beside the published ones."
)

Table = Annotated[list[int] | None, typer.Option("--table", help="The number of a table; default: all.")]
RowName = Annotated[list[str] | None, typer.Option("--row", help="Only rows whose names contain this.")]


@app.command("list")
def list_rows(table: Table = None, row: RowName = None) -> None:
    """List the rows that can be run, with what was published."""
    from c5.evaluation.paper import select_rows

    rows = select_rows(table or [], row or [])
    cells = [[str(each.table), each.name, each.figures["mean"], each.setting, each.method] for each in rows]
    print_table(["table", "row", "mean", "trained and tested", "method"], cells)


@app.command()
def tables(
    data: TestedData,
    out: ResumedFolder,
    table: Table = None,
    row: RowName = None,
    seeds: Annotated[int, typer.Option(help="Networks to train for each row, each with its own seed.", min=1)] = 1,
    epochs: Epochs = None,
    bfloat16: Bfloat16 = False,
    made: Made = None,
    matrices: MatricesFile = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Rows at a time; several make better use of a GPU.", min=1)] = 1,
) -> None:
    """Run the rows of the paper's tables for which the data are given.

    Each finished row is kept in rows.csv. If it is stopped, the same command continues from there.
    """
    from c5.colorimetry.matrices import read_matrices
    from c5.datasets import read_samples
    from c5.evaluation.paper import select_rows
    from c5.evaluation.suite import run_rows

    rows = select_rows(table or [], row or [])

    def find(text: str, rolls: Rolls) -> list[Method]:
        return find_methods(text, rolls, seeds=seeds, epochs=epochs, bfloat16=bfloat16, made=made, matrices=matrices)

    measured = run_rows(
        rows,
        read_samples(data),
        out,
        find,
        matrices=None if matrices is None else read_matrices(matrices),
        report=report_fold,
        track=show_progress,
        command=typed_command(),
        jobs=jobs,
        say=errors.print,
    )
    if not measured:
        raise DataError("no row could be run, for the reasons above")
    errors.print(out / "rows.csv")


@app.command()
def gather(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders with rows.csv; later ones win.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder whose rows.csv they are added to.")],
) -> None:
    """Gather rows that were run separately, for example on several machines, in one folder."""
    from c5.evaluation.suite import gather_rows

    console.print(gather_rows(runs, out))


@app.command()
def page(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder with rows.csv, and the text in NAME.md files.")
    ],
    out: PrintedFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Make the page on the paper: its contents as a checklist."""
    from c5.evaluation.suite import make_checklist

    if out is not None:
        check_free(out, overwrite)
    usual = partial(find_methods, seeds=1, epochs=None, bfloat16=False, made=None, matrices=None)
    write_or_print(make_checklist(folder, usual), out)


OutPicture = Annotated[Path, typer.Option("--out", "-o", help="The picture to write, .png or .jpg.")]
Only = Annotated[list[str] | None, typer.Option("--only", help="Use only these datasets or cameras.")]


@app.command()
def histograms(data: Datasets, out: OutPicture, overwrite: Overwrite = False, only: Only = None) -> None:
    """Draw the mean histogram of each camera with the mean of its lights."""
    from c5.datasets import read_samples
    from c5.evaluation.figures import draw_mean_histograms
    from c5.evaluation.protocols import select_samples

    check_free(out, overwrite)
    samples = read_samples(data)
    samples = select_samples(samples, only) if only else samples
    console.print(draw_mean_histograms(out, samples, lambda items: show_progress(items, "counting")))


@app.command()
def filters(
    out: OutPicture,
    overwrite: Overwrite = False,
    model: Annotated[str, typer.Option(help="A .c5 file, or the name of a bundled model.")] = "bundled",
    cameras: Annotated[int, typer.Option(help="How many virtual cameras.", min=1, max=8)] = 4,
    seed: Seed = 3,
) -> None:
    """Draw the filters and the bias that a model emits for one scene through several virtual cameras."""
    from c5.evaluation.figures import draw_filters
    from c5.model import load_model

    check_free(out, overwrite)
    console.print(draw_filters(out, load_model(model), cameras, seed))


@app.command()
def balanced(
    data: Datasets,
    estimates: Annotated[Path, typer.Option(help="The file that `c5 evaluate --estimates` wrote, .csv or .parquet.")],
    method: Annotated[list[str], typer.Option(help="A method in that file; the first is the one to judge.")],
    out: OutPicture,
    overwrite: Overwrite = False,
    m: Annotated[int | None, typer.Option("--m", help="Images per estimate, including the query.")] = None,
    selection: Annotated[
        Selection | None, typer.Option(help="Which additional images, if the file holds several.")
    ] = None,
    count: Annotated[int, typer.Option(help="How many of the best and of the worst.", min=1)] = 4,
) -> None:
    """Show images where the first method is best and worst, balanced by several methods and by the truth."""
    from c5.datasets import read_samples
    from c5.evaluation.figures import draw_balanced

    check_free(out, overwrite)
    console.print(draw_balanced(out, estimates, read_samples(data), method, m, selection, count))


@app.command()
def curves(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of training runs.")],
    out: OutPicture,
    overwrite: Overwrite = False,
) -> None:
    """Draw the errors of training runs, epoch by epoch."""
    from c5.evaluation.figures import draw_curves

    check_free(out, overwrite)
    console.print(draw_curves(out, runs))
