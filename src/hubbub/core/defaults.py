"""What options are when nobody says otherwise, and their choices, for a terminal that has not loaded the library."""

DEFAULT_MEMORY = "4GB"  # for sorting; anything beyond it goes to disk
DEFAULT_DRAWS = 100_000  # of each value that an audit samples
DEFAULT_AUDIT_LEVEL = 0.99
TRUTH_SHAPES = ("uniform", "bell", "bells", "zipf", "block", "dominant")  # of a plan's assumed truth
WORST_SHAPE = "worst"  # of all these
DESIGN_GOALS = ("risk", "variance", "width", "information", "service-loss", "rate-distortion")
UNSEEN_TRUTHS = ("bell", "block", "zipf")  # for which a design is compared with built-in mechanisms
DOMAIN_KINDS = ("categories", "integers", "bins", "grid", "product")  # in study files
