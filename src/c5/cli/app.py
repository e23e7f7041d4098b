"""The command, assembled: each subcommand is a file of its own."""

from __future__ import annotations

import re
import sys
import warnings
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from c5.cli import catalog, data
from c5.cli.augment import augment
from c5.cli.balance import balance
from c5.cli.calibrate import calibrate
from c5.cli.config import read_defaults
from c5.cli.console import complain, console
from c5.cli.convert import convert
from c5.cli.demo import demo
from c5.cli.estimate import estimate
from c5.cli.evaluate import evaluate
from c5.cli.explain import explain
from c5.cli.learn import learn
from c5.cli.methods import methods
from c5.cli.report import report
from c5.cli.studio import studio
from c5.cli.train import train
from c5.cli.watch import watch
from c5.cli.worst import worst
from c5.errors import C5Error

PANELS: dict[str, dict[str, Any]] = {
    "Photographers": {
        "balance": balance,
        "studio": studio,
        "catalog": catalog.app,
        "watch": watch,
        "learn": learn,
        "demo": demo,
    },
    "Engineers": {
        "estimate": estimate,
        "calibrate": calibrate,
        "explain": explain,
        "train": train,
        "data": data.app,
        "convert": convert,
    },
    "Researchers": {
        "evaluate": evaluate,
        "report": report,
        "worst": worst,
        "augment": augment,
        "methods": methods,
    },
}
"""The subcommands in the order of the help, by who needs them most."""


class Command(TyperCommand):
    """A command that takes `--no-FLAG` for each flag, says what is wrong with a value in plain words, and whose help
    says nothing of the type of a flag."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types_of_flags(super().get_params(ctx))

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        for flag in self.get_params(ctx):
            if getattr(flag, "is_flag", False) and not flag.is_eager:
                opposite = [f"--no-{name.removeprefix('--')}" for name in flag.opts if name.startswith("--")]
                parser.add_option(obj=flag, opts=opposite, dest=flag.name, action="store_const", const=False)
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            plain = (error.message or "").removeprefix("Value error, ")
            error.message = re.sub(r"^Input should be ([^,]*).*", r"must be \1", plain)
            raise


class Group(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types_of_flags(super().get_params(ctx))


class Root(Group):
    """The command itself, with subcommands in the order of `PANELS`: typer would put groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for commands in PANELS.values() for name in commands]


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"c5-awb {version('c5-awb')}")
        raise typer.Exit


def _options(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """White balance for cameras that nobody calibrated.

    `c5 --install-completion` makes the Tab key complete commands and options. Defaults for options can be kept in
    c5.toml, in the user's config folder or where C5_CONFIG says: a table for each command. `--no-FLAG` switches a flag
    off that the file switches on.
    """


def _assemble() -> typer.Typer:
    app = typer.Typer(
        cls=Root,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for panel, commands in PANELS.items():
        for name, command in commands.items():
            if isinstance(command, typer.Typer):
                for registered in command.registered_commands:
                    registered.cls = Command
                app.add_typer(command, name=name, cls=Group, rich_help_panel=panel)
            else:
                app.command(name, cls=Command, rich_help_panel=panel)(command)
    return app


app = _assemble()


def run() -> None:
    """What a user can mend is one line on standard error, and exit code 1."""
    warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
    asks_for_help = len(sys.argv) < 2 or not {"-h", "--help", "--version"}.isdisjoint(sys.argv)
    try:
        app(default_map={} if asks_for_help else read_defaults(typer.main.get_command(app)))
    except C5Error as error:
        complain(error)
        sys.exit(1)
