"""`read_rappor`: reports, sums of bits, candidates and parameters as google/rappor's programs write them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.client import MAX_COHORTS, MAX_FILTER_BITS, MAX_HASHES, WHOLE_NUMBER, as_probability
from hubbub.core.errors import HubbubError, IntakeError, restated, shorten
from hubbub.domains import Categories
from hubbub.mechanisms.bloom_rappor import BloomRappor
from hubbub.mechanisms.mapped_rappor import MappedRappor
from hubbub.mechanisms.text_filters import text_filters
from hubbub.reports import Reports

PARAMETERS = ("k", "h", "m", "p", "q", "f")
BIT_COLUMNS = ("irr", "rappor")  # what the column of reports is called, now and in older files
EMPTY = "Empty"  # what google/rappor's analysis calls a candidate without letters

Row = tuple[int, list[str]]  # the number of the line, and its cells


class _Parameters(NamedTuple):
    bits: int
    hashes: int
    cohorts: int
    p: Fraction
    q: Fraction
    f: Fraction


def read_rappor(params: str | Path, reports: str | Path, map: str | Path) -> Reports:
    r"""Read reports that google/rappor's clients sent, or the sums of their bits.

    ``params.csv`` has a header ``k,h,m,p,q,f`` and one line. The map has a line for each candidate: the text, and for
    each cohort the positions of its h bits, cohort * k + bit + 1. Reports have a header with ``cohort`` and ``irr``, a
    row of k bits whose last letter is bit 0; other columns are left alone, and every line counts as one user. Sums have
    no header: a line for each cohort with the number of its reports, and how many have a one in each bit, from bit 0.

    Where the map holds other bits than the hash of google/rappor's clients, its bits are taken.

    Parameters
    ----------
    params : path
        The file of parameters.
    reports : path
        The reports, or the sums of their bits ("counts").
    map : path
        The candidates.

    Returns
    -------
    Reports
        For `decode_rappor`; ``reports.mechanisms[0]`` is the `BloomRappor` with these candidates.

    Raises
    ------
    IntakeError
        If a file has a mistake: the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder, name) for name in ("params.csv", "counts.csv", "map.csv")]
    ...     _ = paths[0].write_text("k,h,m,p,q,f\n4,1,2,0.25,0.75,0.5\n")
    ...     _ = paths[1].write_text("100,40,60,41,38\n90,39,36,60,37\n")
    ...     _ = paths[2].write_text("apple,2,7\npear,4,5\n")
    ...     reports = hb.read_rappor(*paths)
    >>> reports.users, hb.decode_rappor(reports).shares.argmax()
    (190, np.int64(0))
    """
    parameters = _parameters(_path(params, "params"))
    mechanism = _mechanism(_path(map, "map"), parameters)
    path = _path(reports, "reports")
    rows = _rows(path, "reports")
    first = next(rows, None)
    if first is None:
        raise _wrong(path, 1, "an empty file", "reports with a header, or a line of sums for each cohort")
    if all(WHOLE_NUMBER.fullmatch(cell) for cell in first[1]):
        return _of_sums(path, chain([first], rows), mechanism)
    return _of_reports(path, first, rows, mechanism)


def _wrong(path: Path, line: int, got: object, expected: str, remedy: str = "correct the file") -> IntakeError:
    return IntakeError(
        "not a file of google/rappor", where=f"{path}, line {line}", got=got, expected=expected, remedy=remedy
    )


def _path(given: object, name: str) -> Path:
    """Return the path of a file; refuse what cannot be one."""
    if isinstance(given, str | PathLike) and isinstance(text := fspath(given), str) and text and "\0" not in text:
        return Path(text)
    raise IntakeError(
        "not the path of a file",
        where=f"read_rappor({name}=)",
        got=shorten(given),
        expected="a text or a pathlib.Path",
        remedy="pass the path of the file",
    )


def _rows(path: Path, what: str) -> Iterator[Row]:
    """Yield the lines of a file that hold anything."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                line = reader.line_num
                if cells:
                    yield line, [cell.strip() for cell in cells]
    except OSError as error:
        raise IntakeError(
            f"the file of {what} cannot be read",
            where=str(path),
            got=error.strerror or type(error).__name__,
            expected="a CSV file",
            remedy="check the path",
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise _wrong(path, line + 1, str(error)[:100], "CSV in UTF-8") from None


def _parameters(path: Path) -> _Parameters:
    """Return what the file of parameters says."""
    lines = list(_rows(path, "parameters"))
    header = ",".join(PARAMETERS)
    if not lines or lines[0][1] != list(PARAMETERS):
        raise _wrong(path, lines[0][0] if lines else 1, shorten(",".join(lines[0][1]) if lines else ""), header)
    if len(lines) != 2 or len(lines[1][1]) != len(PARAMETERS):
        last = lines[min(2, len(lines) - 1)]
        raise _wrong(path, last[0], f"{len(lines)} lines, {len(last[1])} numbers", "one line of six numbers")
    line, cells = lines[1]
    limits = {"k": (2, MAX_FILTER_BITS), "h": (1, MAX_HASHES), "m": (1, MAX_COHORTS)}
    whole = []
    for (name, (low, high)), cell in zip(limits.items(), cells, strict=False):
        number = int(cell) if WHOLE_NUMBER.fullmatch(cell) else low - 1
        if not low <= number <= high:
            raise _wrong(path, line, f"{name} = {shorten(cell)}", f"a whole number from {low} to {high}")
        whole.append(number)
    chances = []
    for name, cell in zip(PARAMETERS[3:], cells[3:], strict=True):
        chance = as_probability(cell)
        if chance is None:
            raise _wrong(path, line, f"{name} = {shorten(cell)}", "a probability from 0 to 1")
        chances.append(chance)
    return _Parameters(whole[0], whole[1], whole[2], *chances)


def _mechanism(path: Path, parameters: _Parameters) -> BloomRappor:
    """Return the mechanism with the candidates of a map."""
    bits, hashes, cohorts, p, q, f = parameters
    lines: dict[str, int] = {}
    rows: list[NDArray[np.int64]] = []
    offsets = np.repeat(np.arange(cohorts) * bits, hashes)
    for line, cells in _rows(path, "candidates"):
        if len(cells) != hashes * cohorts + 1:
            expected = f"{hashes * cohorts + 1}: the candidate, and {hashes} bits in each of {cohorts} cohorts"
            raise _wrong(path, line, f"{len(cells)} cells", expected, "write the map for the same parameters")
        text = cells[0] or EMPTY
        if text in lines:
            got, expected = f"{shorten(text)}, as in line {lines[text]}", "each candidate once"
            raise _wrong(path, line, got, expected, "remove the line")
        numbers = [int(cell) - 1 if WHOLE_NUMBER.fullmatch(cell) else -1 for cell in cells[1:]]
        places = np.array(numbers, dtype=np.int64) - offsets
        odd = (places < 0) | (places >= bits)
        if odd.any():
            column = int(np.argmax(odd))
            low = int(offsets[column])
            got = f"{shorten(cells[column + 1])} in column {column + 2}"
            expected = f"from {low + 1} to {low + bits}: a bit of cohort {low // bits}"
            raise _wrong(path, line, got, expected, "bits count from 1, over all cohorts")
        lines[text] = line
        rows.append(places)
    if len(rows) < 2:
        raise _wrong(path, 1, f"{len(rows)} candidates", "two or more")
    table = np.zeros((len(rows), cohorts, bits), dtype=bool)
    np.put_along_axis(table, np.array(rows).reshape(len(rows), cohorts, hashes), True, axis=2)
    packed = np.packbits(table, axis=2).transpose(1, 0, 2)
    texts = list(lines)
    try:
        domain = Categories(texts)
        if (packed == text_filters(texts, cohorts, bits, hashes)).all():
            return BloomRappor(domain, cohorts, bits, hashes, f=f, p=p, q=q)
        mapped = np.ascontiguousarray(packed).tobytes()
        return MappedRappor(domain, cohorts, bits, hashes, mapped, f=f, p=p, q=q)
    except HubbubError as error:
        raise restated(error, IntakeError, where=f"{path}, with its parameters: {error.where}") from None


def _of_sums(path: Path, rows: Iterator[Row], mechanism: BloomRappor) -> Reports:
    """Return reports from the sums of bits."""
    counts = np.zeros((mechanism.cohorts, mechanism.bits + 1), dtype=np.int64)
    seen, line = 0, 1
    for line, cells in rows:
        if seen == mechanism.cohorts:
            raise _wrong(path, line, "one more line", f"{mechanism.cohorts} lines, one for each cohort")
        if len(cells) != mechanism.bits + 1:
            expected = f"{mechanism.bits + 1}: the reports of the cohort, and the ones in each bit"
            raise _wrong(path, line, f"{len(cells)} cells", expected)
        odd = next((cell for cell in cells if not WHOLE_NUMBER.fullmatch(cell) or not 0 <= int(cell) < 2**53), None)
        if odd is not None:
            raise _wrong(path, line, shorten(odd), "a number of reports, from 0")
        counts[seen] = [int(cell) for cell in cells]
        if (counts[seen, 1:] > counts[seen, 0]).any():
            bit = int(np.argmax(counts[seen, 1:] > counts[seen, 0]))
            got = f"{counts[seen, bit + 1]} ones in bit {bit}"
            raise _wrong(path, line, got, f"at most {counts[seen, 0]}, the reports of the cohort")
        seen += 1
    if seen < mechanism.cohorts:
        raise _wrong(path, line, f"{seen} lines", f"{mechanism.cohorts}, one for each cohort")
    try:
        return Reports.from_bit_counts(mechanism, counts[:, 1:], counts[:, 0])
    except HubbubError as error:
        raise restated(error, IntakeError, where=str(path)) from None


def _of_reports(path: Path, header: Row, rows: Iterator[Row], mechanism: BloomRappor) -> Reports:
    """Return reports from single ones."""
    line, names = header
    for known in (("cohort",), BIT_COLUMNS):
        found = [name for name in names if name in known]
        if len(found) > 1:
            remedy = "keep one of them, and rename the others"
            raise _wrong(path, line, f"columns {' and '.join(found)}", f"one column {known[0]}", remedy)
    columns = [
        next((names.index(name) for name in known if name in names), None) for known in (("cohort",), BIT_COLUMNS)
    ]
    cohort_column, bit_column = columns
    if cohort_column is None or bit_column is None:
        expected = "a header with cohort and irr, or a line of sums for each cohort"
        raise _wrong(path, line, shorten(",".join(names)), expected)
    cohorts: list[int] = []
    texts: list[str] = []
    for line, cells in rows:
        if len(cells) != len(names):
            raise _wrong(path, line, f"{len(cells)} cells", f"{len(names)}, as in the header")
        cohort, text = cells[cohort_column], cells[bit_column]
        if not WHOLE_NUMBER.fullmatch(cohort) or not 0 <= int(cohort) < mechanism.cohorts:
            raise _wrong(path, line, f"cohort {shorten(cohort)}", f"from 0 to {mechanism.cohorts - 1}")
        if len(text) != mechanism.bits or text.strip("01"):
            raise _wrong(path, line, shorten(text), f"{mechanism.bits} letters 0 or 1")
        cohorts.append(int(cohort))
        texts.append(text)
    if not texts:
        raise _wrong(path, line, "no reports", "a line for each report")
    letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).reshape(len(texts), mechanism.bits)
    empty = mechanism.output_space.decode(mechanism.output_space.encode([]))
    outputs = np.empty(len(texts), dtype=empty.dtype)
    outputs["cohort"], outputs["bits"] = cohorts, np.packbits(letters[:, ::-1] == ord("1"), axis=1)
    return Reports.from_outputs(mechanism, outputs)
