# Both commands of the README set up everything themselves. A fresh machine needs Python 3.11+, pip, git and make.

PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON ?= $(PYTHON)
ENV := .venv/bin

.PHONY: demo test check bench format clean

demo: $(UV)  ## Replay a real agent session in a small window.
	@$(UV) sync --quiet --no-dev --inexact
	@$(ENV)/clew demo

test: $(UV)  ## Set up and run all tests.
	@$(UV) sync --quiet --inexact
	$(ENV)/python -m pytest -n auto

check: $(UV)  ## Format, lint, types, floors.
	@$(UV) sync --quiet --inexact
	$(ENV)/ruff format --check
	$(ENV)/ruff check
	$(ENV)/mypy
	$(ENV)/lint-imports --no-cache

bench: $(UV)  ## Speed, peers beside, import cost, counting errors. Minutes.
	@$(UV) sync --quiet --inexact
	$(ENV)/python bench/imports.py
	$(ENV)/python bench/calibration.py
	$(UV) run --quiet --no-sync --with-requirements bench/references.txt python bench/counts.py
	$(UV) run --quiet --no-sync --with-requirements bench/peers.txt python bench/peers.py
	$(ENV)/python bench/session.py

format: $(UV)
	@$(UV) sync --quiet --inexact
	$(ENV)/ruff format
	$(ENV)/ruff check --fix

clean:
	rm -rf .venv .uv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist

# uv for a machine that has none; into a folder of the project, so that nothing outside it changes.
.uv/bin/uv:
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .uv uv
