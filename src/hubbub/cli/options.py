"""Options that several commands take, each described once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.core.defaults import DEFAULT_MEMORY

if TYPE_CHECKING:
    from hubbub.intake.read_plan import ReadOptions

FILES = (
    "Files (CSV, TSV, JSON lines, Parquet, Arrow, Excel), folders, patterns, or addresses of tables; several are "
    "counted together."
)
READING = (
    "How reports are read"  # the panel of the help, and the page, of the options that every reader of reports takes
)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")]
StudyOrTally = Annotated[Path, typer.Argument(metavar="STUDY|TALLY", help="The study file, or a tally by itself.")]
Sources = Annotated[list[str], typer.Argument(metavar="SOURCE...", help=FILES)]
SourcesOrNone = Annotated[list[str] | None, typer.Argument(metavar="SOURCE...", help=FILES)]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto, ibu, ems, mle, inv, inv-n, inv-p, norm-sub, norm-cut, base-cut, or one of an installed package.",
    ),
]
Level = Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")]
Fakes = Annotated[
    str, typer.Option(metavar="SHARE|N%", help="Share of fake users that intervals must hold against: 0.01, or 1%.")
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Each group of this column separately; day, week and month divide by time. May be repeated.",
    ),
]
Against = Annotated[
    str | None, typer.Option(metavar="GROUP", help="With several groups: compare each with this one, not the rest.")
]
MinGroup = Annotated[
    int, typer.Option(metavar="USERS", help="With groups: join those with fewer users to one group called others.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
AllowRejects = Annotated[
    str, typer.Option(metavar="N|N%", help="Maximum number of rejected rows: 100, or 1%.", rich_help_panel=READING)
]
RejectsFile = Annotated[
    Path | None,
    typer.Option(
        "--rejects", metavar="FILE", help="Write the rejected rows to this CSV file.", rich_help_panel=READING
    ),
]
Memory = Annotated[
    str,
    typer.Option(metavar="SIZE", help="Memory for sorting; anything beyond it goes to disk.", rich_help_panel=READING),
]
OutputColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column of outputs, if not `output`; of several attributes: `age=NAME,sex=NAME`.",
        rich_help_panel=READING,
    ),
]
UserColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of users, if not `user`.", rich_help_panel=READING),
]
MechanismColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of mechanisms, if not `mechanism`.", rich_help_panel=READING),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of times, if not `time`.", rich_help_panel=READING),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of survey weights, if not `weight`.", rich_help_panel=READING),
]
StratumColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of strata of a survey, if not `stratum`.", rich_help_panel=READING),
]
ClusterColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column of clusters of a survey (users sampled together), if not `cluster`.",
        rich_help_panel=READING,
    ),
]
LatColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column of latitudes, if outputs are places, and it is not `lat`.",
        rich_help_panel=READING,
    ),
]
LonColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of longitudes, if not `lon`.", rich_help_panel=READING),
]
XColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column of distances east of the grid's south-western corner, if not `x`.",
        rich_help_panel=READING,
    ),
]
YColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The column of distances north of that corner, if not `y`.", rich_help_panel=READING
    ),
]
EqualFiles = Annotated[
    str | None,
    typer.Option(
        metavar="skip|count",
        help="Files with equal bytes: skip copies, or count them as different people's reports.",
        rich_help_panel=READING,
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE|TIME",
        help="What was known then: leave out rows with a later time.",
        rich_help_panel=READING,
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Run code that the study names: a class of mechanisms, module:Class. Only for studies that you trust.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: tcp://HOST:8786 (how-to page: Use a cluster)."),
]


def share_or_text(text: str) -> float | str:
    """Return the share that a text names, as a share or with a percent sign; the text itself if it names none."""
    try:
        return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return text


def fakes_share(text: str, where: str) -> float:
    """Return the share that `--fakes` names."""
    from hubbub.intervals.robust_intervals import check_fakes

    return check_fakes(share_or_text(text), "profile", where)


@dataclass(frozen=True)
class ReadingOptions:
    """How reports are read: a command with a parameter of this type takes an option for each field."""

    allow_rejects: AllowRejects = "0"
    rejects: RejectsFile = None
    memory: Memory = DEFAULT_MEMORY
    output_column: OutputColumn = None
    user_column: UserColumn = None
    mechanism_column: MechanismColumn = None
    time_column: TimeColumn = None
    weight_column: WeightColumn = None
    stratum_column: StratumColumn = None
    cluster_column: ClusterColumn = None
    lat_column: LatColumn = None
    lon_column: LonColumn = None
    x_column: XColumn = None
    y_column: YColumn = None
    equal_files: EqualFiles = None
    as_of: AsOfOption = None
    allow_code: AllowCode = False

    def keywords(self) -> ReadOptions:
        """Return the keywords of `read_input`."""
        from hubbub.intake.sources.column_names import ColumnNames

        columns = ColumnNames(
            self.output_column,
            self.user_column,
            self.mechanism_column,
            self.time_column,
            self.weight_column,
            self.stratum_column,
            self.cluster_column,
            lat=self.lat_column,
            lon=self.lon_column,
            x=self.x_column,
            y=self.y_column,
        )
        return {
            "allow_rejects": self.allow_rejects,
            "rejects": self.rejects,
            "memory": self.memory,
            "columns": columns,
            "equal_files": self.equal_files,
            "as_of": self.as_of,
        }
