"""The command, assembled from its subcommands. Each has its own file."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from c5.cli import catalog, data, paper, plugin, sensor
from c5.cli.archive import archive
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
from c5.cli.export import export
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
        "catalog": catalog.app,
        "studio": studio,
        "watch": watch,
        "learn": learn,
        "plugin": plugin.app,
        "demo": demo,
    },
    "Engineers": {
        "estimate": estimate,
        "calibrate": calibrate,
        "explain": explain,
        "export": export,
        "train": train,
        "data": data.app,
        "sensor": sensor.app,
        "convert": convert,
        "archive": archive,
    },
    "Researchers": {
        "evaluate": evaluate,
        "report": report,
        "paper": paper.app,
        "worst": worst,
        "augment": augment,
        "methods": methods,
    },
}
"""The subcommands in the order of the help, grouped by who needs them most."""


USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
"""What click raises for bad arguments. Some versions of typer bundle their own click; only this name works in all."""


class Command(TyperCommand):
    """A command that accepts `--no-FLAG` for each flag, says in plain words what is wrong with a value, and omits the
    types of flags from its help."""

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

    `c5 --install-completion` makes the Tab key complete commands and options. You can keep defaults for options in
    c5.toml, in your config folder or where C5_CONFIG points, with a table for each command. `--no-FLAG` turns off a
    flag that the file turns on.
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
    """Run the command. An error that the user can fix is one line on standard error, with exit code 1."""
    asks_for_help = len(sys.argv) < 2 or not {"-h", "--help", "--version"}.isdisjoint(sys.argv)
    command: Any = typer.main.get_command(app)  # once: it looks at every option of every command
    try:
        defaults = {} if asks_for_help else read_defaults(command)
        sys.exit(command(prog_name="c5", default_map=defaults, standalone_mode=False))
    except USAGE_ERROR as error:
        if message := error.format_message().rstrip("."):  # else it has shown the help
            complain(f"{message}; see {error.ctx.command_path if error.ctx else 'c5'} --help")
        sys.exit(error.exit_code)
    except C5Error as error:
        complain(error)
        sys.exit(1)
    except typer.Abort:
        complain("stopped")
        sys.exit(130)
