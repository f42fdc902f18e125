"""How the options of ``hubbub design`` become arguments of `hubbub.design`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hubbub.cli.plan_arguments import labels_of, parse_whole_numbers, read_truths

if TYPE_CHECKING:
    from hubbub.core.arrays import Floats
    from hubbub.domains import Domain
    from hubbub.intake.study import Study

ENDINGS = (".toml", ".json", ".csv", ".png", ".svg")


def one_number(users: str) -> int:
    """Return the number of users."""
    numbers = parse_whole_numbers(users, "--users", "10000, or 1e4")
    if len(numbers) != 1:
        raise typer.BadParameter("a mechanism is designed for one number of users", param_hint="--users")
    return numbers[0]


def check_outputs(output: Path | None, kept: Path | None, inputs: Sequence[str | Path | None]) -> None:
    """Refuse files that cannot be written, or would overwrite an input, before anything is computed."""
    from hubbub.exporting.result_files import check_output_path
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.intake.study_files import check_new_study

    if output is not None and output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output} must end in {', '.join(ENDINGS)}", param_hint="-o")
    refuse_overwriting(output, inputs, "-o")
    refuse_overwriting(kept, [*inputs, output], "--continue")
    check_output_path(output)
    check_output_path(kept)
    if output is not None and output.suffix.lower() == ".toml":
        check_new_study(output)


def asked_privacy(
    study: Study, epsilon: float | None, privacy: str, pairs: str | None, loss: str | None
) -> tuple[float | None, object, Floats | None]:
    """Return epsilon, the policy, and the losses, as `hubbub.design` takes them."""
    from hubbub.intake.design_tables import read_losses, read_pairs

    if pairs is None and epsilon is None:
        raise typer.BadParameter("pass the privacy of a report (--epsilon 1)", param_hint="--epsilon or --pairs")
    if pairs is not None and privacy != "plain":
        raise typer.BadParameter("pairs are a policy of their own", param_hint="--privacy with --pairs")
    policy: object = privacy
    if pairs is not None:
        policy = read_pairs(pairs, study)
        if isinstance(policy, list) and epsilon is None:
            raise typer.BadParameter(
                f"{pairs} has no column `bound`: add it, or pass one epsilon for all pairs", param_hint="--epsilon"
            )
    return epsilon, policy, None if loss is None else read_losses(loss, study)


def statistics_of(texts: Sequence[str] | None, domain: Domain) -> object:
    """Return what the intervals are about: each value by itself."""
    from hubbub.core.arrays import plain
    from hubbub.planning.validation import ALL_VALUES

    if texts is None:
        return None
    named = labels_of(texts, domain)
    labels: Any = [plain(label) for label in domain.labels] if named == ALL_VALUES else named
    return [[label] for label in labels]


def read_compared(texts: Sequence[str], study: Study) -> tuple[list[str], list[Any]]:
    """Return the names of truths, and the truths."""
    names = list(dict.fromkeys(texts))
    return [Path(name).name for name in names], [read_truths([name], study, "hubbub design --truth") for name in names]
