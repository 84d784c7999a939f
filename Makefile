# Both commands of the README set up everything themselves. A fresh machine needs Python 3.11+, pip, git and make.

PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON ?= $(PYTHON)
ENV := .venv/bin

FRAMEWORKS := crewai praisonai strands

.PHONY: demo test test-clients check bench format clean frameworks relock $(FRAMEWORKS)

demo: $(UV)  ## Replay a real agent session in a small window.
	@$(UV) sync --quiet --no-dev --inexact
	@$(ENV)/clew demo

test: $(UV)  ## Set up and run all tests: what fails in one part keeps no other from running.
	@$(UV) sync --quiet --inexact
	@failed=0; \
	$(ENV)/python -m pytest -n auto || failed=1; \
	$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync frameworks || failed=1; \
	exit $$failed

frameworks: $(FRAMEWORKS)  ## The adapters, each inside the real framework, in an environment of its own.

$(FRAMEWORKS): %: frameworks/%/.venv/ready
	frameworks/$@/.venv/bin/python -m pytest -c frameworks/pytest.ini --rootdir . frameworks/$@ frameworks/test_docs.py

frameworks/%/.venv/ready: frameworks/%/requirements.txt pyproject.toml $(UV)
	@$(UV) venv --quiet --clear frameworks/$*/.venv
	@$(UV) pip install --quiet --python frameworks/$*/.venv/bin/python -r $< --editable .
	@touch $@

relock: $(UV)  ## The newest releases of the frameworks.
	@for name in $(FRAMEWORKS); do \
	  $(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate --python-version 3.11 \
	    frameworks/$$name/wanted.txt pyproject.toml --extra $$name -o frameworks/$$name/requirements.txt; \
	done

test-clients: $(UV) tests/clients/node_modules/ready  ## The real programs resume sessions that clew wrote. Minutes; wants npm and 1.5 GB.
	@$(UV) sync --quiet --inexact
	$(ENV)/python -m pytest -n auto tests/clients/resuming.py

tests/clients/node_modules/ready: tests/clients/package.json
	npm install --prefix tests/clients --no-audit --no-fund --no-package-lock
	@touch $@

check: $(UV)  ## Format, lint, types, floors.
	@$(UV) sync --quiet --inexact
	$(ENV)/ruff format --check
	$(ENV)/ruff check
	$(ENV)/mypy
	@$(MAKE) --no-print-directory $(FRAMEWORKS:%=types-%)
	$(ENV)/lint-imports --no-cache

types-%: frameworks/%/.venv/ready
	frameworks/$*/.venv/bin/python -m mypy --config-file frameworks/mypy.ini src/clew/adapters/$*

bench: $(UV)  ## Facts that survive, speed, peers beside, import cost, counting errors. Minutes.
	@$(UV) sync --quiet --inexact
	$(ENV)/python bench/imports.py
	$(ENV)/python bench/calibration.py
	$(UV) run --quiet --no-sync --with-requirements bench/references.txt python bench/counts.py
	$(UV) run --quiet --no-sync --with-requirements bench/peers.txt python bench/peers.py
	$(UV) run --quiet --no-sync --with-requirements bench/peers.txt python bench/facts.py
	$(ENV)/python bench/dollars.py
	$(ENV)/python bench/session.py

format: $(UV)
	@$(UV) sync --quiet --inexact
	$(ENV)/ruff format
	$(ENV)/ruff check --fix

clean:
	rm -rf .venv frameworks/*/.venv tests/clients/node_modules .uv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist

# uv for a machine that has none; into a folder of the project, so that nothing outside it changes.
.uv/bin/uv:
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .uv uv
