"""Where things stand in the paper, as its readers see it: numbers of figures and sections for labels of its source.

Figures and claims name labels, which stay when the paper is set again. Sections are numbered in its conference style.
"""

from __future__ import annotations

import re

LATEX_LABEL = re.compile(r"\b(?:fig|sec|eq|thm):[\w-]+")

PRINTED_PLACES = {
    "fig:holes": "Figure 1",
    "fig:geometric_on_line": "Figure 2",
    "fig:geom_binomial_invn": "Figure 2(a)",
    "fig:geom_uniform_invn": "Figure 2(b)",
    "fig:geom_binomial_invp": "Figure 2(c)",
    "fig:geom_uniform_invp": "Figure 2(d)",
    "fig:geom_binomial_em": "Figure 2(e)",
    "fig:geom_uniform_em": "Figure 2(f)",
    "fig:ml_non_unique_non_convergent_to_real": "Figure 4",
    "fig:ml_non_interior_non_stationary": "Figure 5",
    "fig:sf_map": "Figure 8",
    "fig:geometric_on_grid": "Figure 9",
    "fig:geom_grid_noisy": "Figure 9(b)",
    "fig:geom_grid_estimated_invp": "Figure 9(c)",
    "fig:geom_grid_estimated_invn": "Figure 9(d)",
    "fig:geom_grid_estimated_em": "Figure 9(e)",
    "fig:box_estimators_geom": "Figure 10",
    "fig:box_geom_tv": "Figure 10(a)",
    "fig:box_geom_emd": "Figure 10(b)",
    "fig:box_estimators_lap_exp": "Figure 11",
    "fig:box_lap_tv": "Figure 11(a)",
    "fig:box_exp_emd": "Figure 11(b)",
    "fig:box_estimators_krr": "Figure 12",
    "fig:box_krr_tv": "Figure 12(a)",
    "fig:box_krr_emd": "Figure 12(b)",
    "fig:rappor_on_line_em": "Figure 13",
    "fig:box_estimators_rappor": "Figure 14",
    "sec:revisiting_ibu_non_unique": "Section III-A",
    "sec:not-approximate": "Section III-B",
    "sec:revisiting_ibu_non_stationary": "Section III-C",
    "sec:privacy_model": "Section V",
    "sec:single_inp": "Section VI",
    "sec:mul_input": "Section VII",
    "sec:lingeo": "Section IX-A",
    "sec:Gowalla": "Section IX-B",
    "eq:conv_rate": "the rate in Section VI-B",
    "thm:alg_conv": "the theorem of Section V-D",
}


def printed_place(where: str) -> str:
    """Return where something stands, with numbers for the labels of the paper's source; unknown labels stay.

    >>> printed_place("fig:box_geom_tv and the text before it")
    'Figure 10(a) and the text before it'
    """
    return LATEX_LABEL.sub(lambda label: PRINTED_PLACES.get(label[0], label[0]), where)
