# Two commands do everything on a fresh machine with python3 (3.11 or newer, with venv) and make:
#   make demo    sets up, then recovers a map from noisy reports, with a picture
#   make test    sets up, then runs all checks
# make demo-web shows the rest in a browser: a question page, its collector, simulated people and live results.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
CREATED := $(VENV)/.created
RUNTIME := $(VENV)/.runtime
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
CODE := src tests scripts benchmarks examples docs/conf.py docs/_extensions docs/gallery
DOCS := $(VENV)/.docs
# One thread for linear algebra each: the tests themselves run side by side. Compiled modules are kept, whatever the
# environment says, because the tests start hundreds of processes that would each compile them anew.
TEST_SETTINGS := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

# What does not need each other is made side by side: a browser for the tests while packages are installed, and compiled
# loops while those packages are installed that only the tests need.
MAKEFLAGS += --jobs=2

.PHONY: docs docs-serve demo demo-web test lint style format slow matrix package paper benchmarks studies accuracy few-values clean

demo: $(RUNTIME)
	$(BIN)/hubbub demo -o demo-output

demo-web: $(RUNTIME)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[serve]"
	$(BIN)/hubbub demo --web -o demo-output

# Types are checked beside the tests: for a minute they would keep one core busy and the other idle.
test: style browser $(COMPILED)
	$(BIN)/mypy > $(VENV)/types.log 2>&1 & types=$$!; \
	$(TEST_SETTINGS) MPLBACKEND=Agg $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"; tests=$$?; \
	wait $$types; typed=$$?; cat $(VENV)/types.log; exit $$((tests + typed))

lint: style
	$(BIN)/mypy

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports

slow: $(READY) $(COMPILED)
	$(TEST_SETTINGS) MPLBACKEND=Agg HUBBUB_EXAMPLES=all $(BIN)/python -m pytest -n 2 -m "slow or drawn"

# The site, in a folder for each version: tutorials and pictures are made anew where their code has changed.
docs: $(DOCS)
	$(BIN)/python scripts/build_site.py site

docs-serve: docs
	$(BIN)/python scripts/serve_site.py site

# Builds wheel and source distribution, checks both, installs the wheel alone and runs it; what passed is left in dist.
package:
	$(PYTHON) scripts/check_package.py dist

# Installs and imports hubbub under every Python version that pyproject.toml claims and this machine has.
matrix:
	$(PYTHON) scripts/check_pythons.py

# Every experiment of the paper, a hundred times each: less than twenty minutes on two cores. Stopped, it goes on where it was.
paper: $(RUNTIME)
	$(BIN)/hubbub reproduce $(if $(COUNTS),--counts $(COUNTS)) -o paper-output

# One after the other: each wants the machine for itself. COUNTS names the paper's counts of San Francisco.
COUNTS ?= $(wildcard ../shared/data/gowalla_sf_24x16.csv)
benchmarks: $(READY)
	for name in startup maximum randomized_response unary hashing bloom_rappor several_attributes batch planar sampling epsilon client_faults sizes javascript peers protocols trust auto intake places cluster kills serve serve_kills reproduce plan support_plans discovery every_kind report; do \
	  $(BIN)/python benchmarks/$$name.py $$(case $$name in maximum|batch|peers|trust|auto|reproduce|plan) echo "$(if $(COUNTS),--counts $(COUNTS))";; esac) || exit 1; \
	done
	$(BIN)/python benchmarks/table.py

# Coverage of intervals and alarms of the test of the fit, over thousands of simulated studies: hours.
studies: $(READY)
	$(BIN)/python benchmarks/intervals.py $(if $(COUNTS),--counts $(COUNTS))
	$(BIN)/python benchmarks/attribute_intervals.py
	$(BIN)/python benchmarks/fakes.py $(if $(COUNTS),--counts $(COUNTS))
	$(BIN)/python benchmarks/sets.py
	$(BIN)/python benchmarks/sets.py --against-likelihood
	$(BIN)/python benchmarks/resolve.py $(if $(COUNTS),--counts $(COUNTS))
	$(BIN)/python benchmarks/regions.py
	$(BIN)/python benchmarks/attribute_references.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/trend.py
	$(BIN)/python benchmarks/fit.py --fresh $(if $(COUNTS),--counts $(COUNTS))
	$(BIN)/python benchmarks/table.py

# Errors of all methods in 240 kinds of studies: an hour. What was measured is kept, and the next run goes on there.
accuracy: $(READY)
	$(BIN)/python benchmarks/accuracy.py $(if $(COUNTS),--counts $(COUNTS))
	$(BIN)/python benchmarks/best_stop.py
	$(BIN)/python benchmarks/accuracy_pictures.py $(if $(COUNTS),--counts $(COUNTS))
	$(BIN)/python benchmarks/table.py

# `auto` against the exact maximum in every kind of study with two to ten values. It goes on where it was, too. Then
# against other methods for several attributes, which takes a quarter of an hour.
few-values: $(READY)
	$(BIN)/python benchmarks/few_values.py
	$(BIN)/python benchmarks/auto_attributes.py
	$(BIN)/python benchmarks/table.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format $(CODE)

# Double quotes in these lines, so that Windows' own shell can run them, too.
$(CREATED): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'hubbub needs Python 3.11 or newer; name one with: make PYTHON=python3.12 test')"
	$(PYTHON) -m venv $(VENV)
	@$(PYTHON) -c "open('$(CREATED)', 'w').close()"

# What running needs, and nothing of the tests: all that `make demo` installs. Only a small part of it is loaded: Python
# compiles that when it is first imported, which is quicker than compiling everything here.
$(RUNTIME): $(CREATED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e .
	@$(PYTHON) -c "open('$(RUNTIME)', 'w').close()"

# What the tests need, too, after what running needs: then the loops can be compiled meanwhile.
$(READY): $(RUNTIME)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[dev]"
	@$(PYTHON) -c "open('$(READY)', 'w').close()"

# Loops of which the sources have not changed are not compiled again.
$(COMPILED): $(RUNTIME) scripts/compile_loops.py $(wildcard src/hubbub/*/compiled_*.py)
	$(TEST_SETTINGS) $(BIN)/python scripts/compile_loops.py
	@$(PYTHON) -c "open('$(COMPILED)', 'w').close()"

$(DOCS): $(CREATED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs,cluster]"
	@$(PYTHON) -c "open('$(DOCS)', 'w').close()"

# Tests of pages in a real browser need a chromium; without one they are skipped, and the end of the run says so.
# HUBBUB_CHROMIUM names another one. Where none can be installed, everything else goes on.
BROWSERS := chromium chromium-browser google-chrome
.PHONY: browser
browser:
	@for name in "$$HUBBUB_CHROMIUM" $(BROWSERS); do [ -n "$$name" ] && command -v "$$name" > /dev/null && exit 0; done; \
	command -v apt-get > /dev/null || exit 0; \
	if [ "$$(id -u)" = 0 ]; then as=""; elif sudo -n true 2> /dev/null; then as="sudo -n"; else exit 0; fi; \
	echo "installing chromium for the tests of pages"; \
	export DEBIAN_FRONTEND=noninteractive; quick="-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20"; \
	{ $$as apt-get $$quick install -y --no-install-recommends chromium || \
	  { $$as apt-get $$quick update && $$as apt-get $$quick install -y --no-install-recommends chromium; }; } > /dev/null 2>&1 || \
	echo "chromium could not be installed: the tests of pages will be skipped"

clean:
	rm -rf $(VENV) build dist demo-output hubbub-demo paper-output hubbub-paper .mypy_cache .ruff_cache .pytest_cache .hypothesis
