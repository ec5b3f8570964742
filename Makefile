# Needs make and Python 3.11 or newer; everything else is installed into .venv, once, and again when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The tests run in two processes; each keeps its linear algebra to one thread.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# Most of what the quick tests cost is compilation of programs that run once: it is done as cheaply as can be. The slow
# tests compile as users do. A flag that XLA does not know ends the process, so that each is tried once.
CHEAP := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1

.PHONY: run test test-slow mutants lint docs bench
.NOTPARALLEL:

run: $(VENV)/.installed-base
	$(BIN)/solvable study 'z1**2 + sign(z1*z2*z3)' --out out

test: $(VENV)/.installed-dev $(VENV)/.xla-flags
	$(ONE_THREAD) XLA_FLAGS="$$(cat $(VENV)/.xla-flags)" $(BIN)/python -m pytest -n 2 --dist loadgroup --quiet

test-slow: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile --quiet -m slow

mutants: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/python tests/mutants.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: $(VENV)/.installed-docs
	$(BIN)/zensical build --clean --strict

bench: $(VENV)/.installed-base
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python "$$script" || exit 1; done

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-base: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable '.[dev]'
	touch $@ $(VENV)/.installed-base

$(VENV)/.xla-flags: $(VENV)/.installed-dev Makefile
	@for flag in $(CHEAP); do \
	    if XLA_FLAGS=$$flag $(BIN)/python -c 'import jax; jax.devices()' 2>/dev/null; then echo $$flag; fi; \
	done >$@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable '.[docs]'
	touch $@ $(VENV)/.installed-base
