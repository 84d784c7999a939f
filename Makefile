# Every target sets up what it needs. A fresh machine needs Python 3.11+, pip, git and make.

PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
export UV_PYTHON_DOWNLOADS := never
# Where a company has a certificate authority of its own, only the system knows it.
export UV_SYSTEM_CERTS := true
export UV_PYTHON ?= $(PYTHON)
VENV ?= .venv
ENV := $(VENV)/bin
PINNED := requirements-dev.txt

# Where it is set, every process of the tests would compile clew and all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE
# One more than there are cores: some tests wait, for a silence to end or for another process.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Files in their order, each in one process: what its tests share is made once, and the last ones are short.
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

FRAMEWORKS := adk agent_framework crewai hermes inspect_ai langchain litellm openai_agents praisonai pydantic_ai strands

.PHONY: demo test test-quick test-long nightly test-clients long-sessions test-frameworks test-python check laws kills fuzz-gateway fuzz-mixups fuzz-harm coverage mutants release plugin bench proof peers live tau2 compactbench types-live paste docs format clean relock $(FRAMEWORKS)

demo: $(ENV)/clew  ## Replay a real agent session in a small window.
	@$(ENV)/clew demo --store $(VENV)/demo.db

test: $(VENV)/ready  ## The tests, but for what takes long (make nightly) and those inside the frameworks.
	$(ENV)/python -m pytest $(PARALLEL)

test-quick: $(VENV)/ready  ## The tests nearest to what was changed, for less than a minute: SINCE=COMMIT, SECONDS=, else since the last commit.
	$(ENV)/ruff check --quiet
	$(ENV)/python scripts/quick.py $(if $(SINCE),--since $(SINCE)) $(if $(SECONDS),--seconds $(SECONDS))

test-long: $(VENV)/ready  ## The tests marked nightly.
	$(ENV)/python -m pytest $(PARALLEL) -m nightly

# Hours.
nightly:  ## All that is not for every change, one after another; what fails keeps nothing else from running.
	@$(MAKE) --no-print-directory --keep-going $(NIGHTLY)

NIGHTLY := test-long coverage laws kills mutants fuzz-gateway fuzz-harm test-frameworks test-clients long-sessions paste release

test-frameworks:  ## The adapters, each inside the real framework: what fails in one keeps no other from running.
	@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync $(FRAMEWORKS)

test-python:  ## The tests on another Python, beside: make test-python PYTHON=python3.13
	@$(MAKE) --no-print-directory test VENV=.venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

$(FRAMEWORKS): %: frameworks/%/.venv/ready
	frameworks/$@/.venv/bin/python -m pytest -c frameworks/pytest.ini --rootdir . frameworks/$@ frameworks/test_own.py frameworks/test_names.py frameworks/test_recalled.py frameworks/test_docs.py frameworks/test_recipes.py

CLIENTS := resuming compacting every_compaction marketplaces claude_code codex opencode pi copilot installed plugged plugins gemini_cli qwen_code aider sdks litellm_sdk answered_thrice in_other_words thresholds

test-clients: $(VENV)/ready tests/clients/node_modules/ready tests/clients/.venv-aider/ready tests/clients/.venv-litellm/ready  ## The real programs resume sessions that clew wrote, and work through the gateway. Minutes; wants npm and 2.5 GB. NEWEST=1 takes their newest releases, and says what broke.
	$(if $(NEWEST),$(ENV)/python scripts/newest_clients.py $(CLIENTS),$(ENV)/python -m pytest -n auto $(CLIENTS:%=tests/clients/%.py))

long-sessions: $(VENV)/ready tests/clients/node_modules/ready  ## Claude Code and Codex, sixty turns each, several windows long; ten minutes.
	$(ENV)/python -m pytest -s tests/clients/long_sessions.py

tests/clients/.venv-%/ready: tests/clients/%.txt | $(UV)
	@$(UV) venv --quiet --clear tests/clients/.venv-$*
	@$(UV) pip install --quiet --python tests/clients/.venv-$*/bin/python -r $<
	@touch $@

tests/clients/node_modules/ready: tests/clients/package.json
	npm install --prefix tests/clients --no-audit --no-fund --no-package-lock
	@touch $@

check: $(VENV)/ready  ## Format, lint, types, floors.
	$(ENV)/ruff format --check
	$(ENV)/ruff check
	$(ENV)/mypy
	@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync $(FRAMEWORKS:%=types-%)
	$(ENV)/lint-imports --no-cache
	$(ENV)/python scripts/plugin_tree.py --check

plugin: $(VENV)/ready  ## What marketplaces and registries read of the plugin, written anew from its description.
	$(ENV)/python scripts/plugin_tree.py

types-%: frameworks/%/.venv/ready
	frameworks/$*/.venv/bin/python -m mypy --config-file frameworks/mypy.ini --cache-dir frameworks/$*/.venv/mypy src/clew/adapters/$*

# For every night: what random cases show, with cases nobody has seen.
laws: $(VENV)/ready  ## Laws and fuzzers with a new seed, or with SEED=; EXAMPLES=, SESSIONS= and TURNS= say how many.
	@seed=$${SEED:-$$(date +%s)}; failed=0; \
	echo "make laws SEED=$$seed EXAMPLES=$(or $(EXAMPLES),1000) SESSIONS=$(or $(SESSIONS),2000) TURNS=$(or $(TURNS),10000)"; \
	LAWS_SEED=$$seed LAWS_EXAMPLES=$(or $(EXAMPLES),1000) CASES=5 \
	  $(ENV)/python -m pytest -n auto -m hypothesis --hypothesis-seed=$$seed || failed=1; \
	$(ENV)/python bench/fuzz.py --sessions $(or $(SESSIONS),2000) --seed $$seed --processes 2 || failed=1; \
	$(ENV)/python bench/fuzz_mixups.py --turns $(or $(TURNS),10000) --seed $$seed --processes 2 || failed=1; \
	exit $$failed

kills: $(VENV)/ready  ## Clients, upkeep and servers killed at every act: COUNT=, 500 unless told; a quarter of an hour and more.
	CLEW_KILLS=$(or $(COUNT),500) $(ENV)/python -m pytest -n 2 -m '' -rP -o faulthandler_timeout=0 tests/test_crashes.py tests/test_gateway_replicas.py

fuzz-gateway: $(VENV)/ready | $(UV)  ## Requests of all kinds to a gateway, by a fuzzer of ours and by schemathesis: REQUESTS=, SEED=
	$(ENV)/python bench/fuzz_gateway.py --requests $(or $(REQUESTS),2000) --seed $(or $(SEED),0)
	$(ENV)/python bench/schema_gateway.py $(UV) tool run schemathesis==4.32.5 run {schema} --url {url} --seed $(or $(SEED),0) \
	  --phases fuzzing --mode all --max-examples 50 \
	  --checks not_a_server_error,response_schema_conformance,content_type_conformance

fuzz-mixups: $(VENV)/ready  ## Conversations that differ in their words alone: does one get a word of another? TURNS=, SEED=, STORE=postgres
	$(ENV)/python bench/fuzz_mixups.py --turns $(or $(TURNS),50000) --seed $(or $(SEED),0) --store $(or $(STORE),sqlite) --processes 2

fuzz-harm: $(VENV)/ready  ## Sessions of all clients with one fault each: does anything fail that works without clew? CALLS=, SEED=
	$(ENV)/python bench/fuzz_harm.py $(or $(CALLS),10000) $(or $(SEED),0)

coverage: $(VENV)/ready  ## Lines that tests run: the figure and the worst files; below the floor it fails.
	CASES=1 $(ENV)/python -m pytest $(PARALLEL) --cov --cov-report=
	@$(ENV)/coverage report --sort=cover --skip-covered > .coverage.txt; failed=$$?; \
	head -22 .coverage.txt; tail -2 .coverage.txt; exit $$failed

mutants: $(VENV)/ready  ## One change at a time, fifty in all, others each day, and whether a test notices: FILES= COUNT= SEED=
	$(ENV)/python scripts/mutants.py $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(FILES)

release: $(VENV)/ready  ## Wheel and sdist in dist/, the package for npm in build/npm, looked into, installed in clean environments and tried.
	$(ENV)/python scripts/release.py --uv $(UV) --pinned $(PINNED)

bench: $(VENV)/ready  ## Facts that survive, speed, import cost, counting errors. Minutes.
	$(ENV)/python bench/imports.py
	$(ENV)/python bench/calibration.py
	$(UV) run --quiet --no-sync --with-requirements bench/references.txt python bench/counts.py
	$(ENV)/python bench/facts.py
	$(ENV)/python bench/session.py

paste: $(VENV)/ready  ## Every line of README and quickstart, typed into a shell and a Python prompt: a fresh clone, an empty home. Minutes.
	$(ENV)/python tests/pasting.py README.md docs/quickstart.md

proof: $(VENV)/ready  ## Every claim measured beside others, into bench/results and the documents: ONLY=, DATA=, SEED=, SHARE=. Up to an hour.
	-@$(MAKE) --no-print-directory --keep-going --jobs 2 peers
	$(ENV)/python bench/proof.py $(if $(ONLY),--only $(ONLY)) $(if $(DATA),--data $(DATA)) $(if $(SEED),--seed $(SEED)) $(if $(SHARE),--share $(SHARE))

peers: $(patsubst %.txt,%/ready,$(subst packages/,packages/.venv-,$(wildcard bench/packages/*.txt)))  ## The newest releases of others, each in an environment of its own.

bench/packages/.venv-%/ready: bench/packages/%.txt | $(UV)
	@$(UV) venv --quiet --clear bench/packages/.venv-$*
	@said=bench/packages/.venv-$*/failed.txt; \
	$(UV) pip install --quiet --python bench/packages/.venv-$*/bin/python -r $< 2> $$said && rm $$said || { cat $$said >&2; exit 1; }
	@touch $@

live: tau2 compactbench  ## Live tasks, tau2 and CompactBench, with a model: MODEL=openai/gpt-5-mini, or scripted; LIMIT=

tau2: .venv-live/ready
	.venv-live/bin/python bench/live.py tau2 --model $(or $(MODEL),scripted) --limit $(or $(LIMIT),2) --compaction clew,auto,none

compactbench: .venv-live/ready $(if $(TEMPLATES),,bench/out/compactbench)  ## TEMPLATES=DIR: its benchmarks/public, if you have it.
	.venv-live/bin/python bench/live.py compactbench --model $(or $(MODEL),scripted) --limit $(or $(LIMIT),2) \
	  --templates $(or $(TEMPLATES),bench/out/compactbench/benchmarks/public) --suite elite_practice --difficulty hard \
	  --methods clew,naive-summary,hybrid-ledger

types-live: .venv-live/ready
	MYPYPATH=bench:src .venv-live/bin/python -m mypy --config-file frameworks/mypy.ini --cache-dir .venv-live/mypy bench/livetasks

.venv-live/ready: bench/live.txt pyproject.toml | $(UV)
	@$(UV) venv --quiet --clear .venv-live
	@$(UV) pip install --quiet --python .venv-live/bin/python --build-constraints $(PINNED) mypy -r $< --editable .
	@touch $@

# Its wheel has no templates.
bench/out/compactbench:
	git clone --quiet https://github.com/compactbench/compactbench $@
	git -C $@ checkout --quiet 8bb1f62ee96094979d8e3eaf9dfde74a8190530d

docs: .venv-docs/ready  ## The documentation as a site in site/, with references of commands and names; a broken link fails.
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet
	@echo "site/index.html"

.venv-docs/ready: scripts/site.txt pyproject.toml | $(UV)
	@$(UV) venv --quiet --clear .venv-docs
	@$(UV) pip install --quiet --python .venv-docs/bin/python --build-constraints $(PINNED) -r $< --editable '.[gateway]'
	@touch $@

format: $(VENV)/ready
	$(ENV)/ruff format
	$(ENV)/ruff check --fix

relock: $(UV)  ## The newest releases of the tools and of the frameworks.
	@$(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate --python-version 3.11 \
	  --group pyproject.toml:dev pyproject.toml -o $(PINNED)
	@for name in $(FRAMEWORKS); do \
	  $(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate --python-version 3.11 \
	    frameworks/$$name/wanted.txt pyproject.toml --extra $$name -o frameworks/$$name/requirements.txt; \
	done
	@printf 'mkdocs-material\nmkdocstrings-python\n' | $(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate \
	  --python-version 3.11 - -o scripts/site.txt
	@for wanted in aider-chat:aider "litellm mcp:litellm"; do \
	  printf '%s\n' $${wanted%%:*} | $(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate \
	    --python-version 3.11 - -o tests/clients/$${wanted##*:}.txt; \
	done

clean:
	rm -rf .venv .venv-* frameworks/*/.venv tests/clients/node_modules tests/clients/.venv-* .uv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* dist site

# Not by `uv sync`: its lock names the host of the package index that made it, and that is nobody else's.
$(VENV)/ready: $(PINNED) pyproject.toml | $(UV)
	@$(UV) venv --quiet --allow-existing $(VENV)
	@$(UV) pip install --quiet --python $(ENV)/python --build-constraints $(PINNED) -r $(PINNED) --editable .
	@touch $@

$(ENV)/clew: pyproject.toml | $(UV)  # what a user has, and no tools
	@$(UV) venv --quiet --allow-existing $(VENV)
	@$(UV) pip install --quiet --python $(ENV)/python --build-constraints $(PINNED) --constraints $(PINNED) --editable .
	@touch $@

frameworks/%/.venv/ready: frameworks/%/requirements.txt pyproject.toml | $(UV)
	@$(UV) venv --quiet --clear frameworks/$*/.venv
	@$(UV) pip install --quiet --python frameworks/$*/.venv/bin/python --build-constraints $(PINNED) -r $< --editable .
	@touch $@

# uv for a machine that has none; into a folder of the project, so that nothing outside it changes.
.uv/bin/uv:
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .uv uv==0.13.7
