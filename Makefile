PYTHON ?= python3
ARGS ?=
VENV := .venv
# Aegra needs a newer Python than the rest.
SERVE_VENV := .venv-serve
NEWER := import sys, venv; sys.exit(sys.version_info < (3, 12))
SERVE_PYTHON ?= $(shell for python in python3 python3.12 python3.13 $$HOME/.pyenv/versions/3.1[23]*/bin/python; do \
	$$python -c '$(NEWER)' 2>/dev/null && command -v $$python && break; done)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --no-compile --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-strip-extras --custom-compile-command "make lock" --group build
# What every environment of this checkout has: the command, with all that it may be asked to use.
RUN := --extra cli --extra documents --extra memory --extra postgres --extra tavily

.DEFAULT_GOAL := help
.PHONY: help run test test-all published quick realmodel lint types bench bench-memory figures dev serve docs wheel notebooks outputs lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

QUESTION := What does UCT balance, how do agents keep lessons from failures, and which budgets limit calls, tokens and time?

run: $(VENV)/base.stamp ## Answer a question with LATS, offline and without keys, and show the tree as a page
	@$(BIN)/reflect run lats "$(QUESTION)" --n 3 --min-score 0.95
	@$(BIN)/reflect tree --html run.html --force
	@echo "Open run.html in a browser: the tree as a page, with its history."

# Without caches every process that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# The rooms below the graphs.
UNITS := $(addprefix tests/,environments memory models nodes state text tools tree_search web_search)

# More workers than cores: tests wait for other processes, in test-all most. Each collects them all.
test: $(VENV)/compiled.stamp ## Run the tests that protect a commit (ARGS="-k lats" runs some of them)
	@$(BIN)/python -m pytest -n 3 -m "not thorough" $(ARGS)

test-all: $(VENV)/compiled.stamp $(if $(SERVE_PYTHON),$(SERVE_VENV)/stamp) ## Run all tests but those of the next two targets: each kill, each notebook, each case
	@$(BIN)/python -m pytest -n 4 -m "not published and not realmodel" $(ARGS)

published: $(VENV)/compiled.stamp ## Measure anew the published tables that take long, by replays of recorded outputs
	@$(BIN)/python -m pytest -n 2 -m published $(ARGS)

quick: $(VENV)/compiled.stamp ## Run the unit tests, which start no process and open no socket
	@$(BIN)/python -m pytest -n 2 -m "not process and not wire and not thorough" $(UNITS) $(ARGS)

realmodel: $(VENV)/compiled.stamp ## Run the tests that ask a real small language model on this machine
	@$(BIN)/python -m pytest -m realmodel $(ARGS)

lint: $(VENV)/dev.stamp ## Check style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp ## Check the types, with two checkers
	@$(BIN)/mypy
	@$(BIN)/basedpyright --level error --pythonpath $(BIN)/python

bench: $(VENV)/dev.stamp ## Measure every strategy, and other libraries (ARGS=--no-peers leaves them out)
	@$(BIN)/python -m bench $(ARGS)

bench-memory: $(VENV)/dev.stamp ## Measure what the memory and the local search find (ARGS="FOLDER" names the data)
	@$(BIN)/python -m bench.retrieval $(ARGS)

figures: $(VENV)/dev.stamp ## Measure, and write the tables into the docs (ARGS="bench.samples" measures something else)
	@$(BIN)/python -m bench.pages $(ARGS)

dev: $(VENV)/dev.stamp ## Serve the graphs to LangGraph Studio on this machine
	@LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_STRICT_MSGPACK=true LANGGRAPH_NO_VERSION_CHECK=true LANGSMITH_TRACING=$${LANGSMITH_TRACING:-false} \
		$(BIN)/langgraph dev --no-browser --no-reload --n-jobs-per-worker 20 $(ARGS)

serve: $(SERVE_VENV)/stamp ## Serve the graphs to any client of OpenAI's or LangGraph's API (ARGS="--port 8000")
	@LANGSMITH_TRACING=$${LANGSMITH_TRACING:-false} $(SERVE_VENV)/bin/python -m reflective_agents.serve $(ARGS)

docs: $(VENV)/dev.stamp ## Build the documentation as a site, into site/
	@$(BIN)/python -m notebooks.site

wheel: $(VENV)/base.stamp ## Build the wheel and the source archive, into dist/
	@$(BIN)/hatchling build --directory dist

notebooks: $(VENV)/dev.stamp ## Open the notebooks in JupyterLab
	@$(BIN)/jupyter lab notebooks

outputs: $(VENV)/dev.stamp ## Run the notebooks offline, and write what they show into them (ARGS="lats" runs one)
	@$(BIN)/python -m notebooks.outputs $(ARGS)

lock: $(VENV)/dev.stamp ## Pin the dependencies of pyproject.toml (ARGS=--upgrade takes the newest versions)
	$(COMPILE) $(ARGS) --output-file requirements/base.txt $(RUN)
	$(COMPILE) $(ARGS) --output-file requirements/dev.txt --constraints requirements/base.txt \
		$(RUN) --extra community --extra embeddings --extra evals --extra figures --extra mcp --extra otel --extra studio --extra notebooks --extra parquet --extra ray --extra testing --extra tune --group dev
	$(COMPILE:3.11=3.12) $(ARGS) --output-file requirements/serve.txt --constraints requirements/dev.txt \
		$(RUN) --extra serve

clean: ## Remove the environment and all caches
	rm -rf $(VENV) $(SERVE_VENV) dist site run.html .benchmarks .hypothesis .langgraph_api .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The project comes without build isolation, so that its build backend is the pinned one.
$(VENV)/%.stamp: requirements/%.txt pyproject.toml | $(BIN)/pip
	@echo "Installing requirements/$*.txt into $(VENV) ..."
	@$(BIN)/python requirements/install.py $<
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@ $(VENV)/base.stamp # the development pins contain the basic ones

$(SERVE_VENV)/stamp: requirements/serve.txt pyproject.toml
	@$(if $(SERVE_PYTHON),,echo "The server needs Python 3.12 or newer: make serve SERVE_PYTHON=<its path>"; exit 1)
	@echo "Installing requirements/serve.txt into $(SERVE_VENV) ..."
	@$(SERVE_PYTHON) -m venv $(SERVE_VENV)
	@$(SERVE_VENV)/bin/python requirements/install.py $<
	@$(PIP:$(VENV)%=$(SERVE_VENV)%) --no-build-isolation --no-deps --editable .
	@touch $@

# Four workers that start together would else compile the same libraries four times.
$(VENV)/compiled.stamp: $(VENV)/dev.stamp
	-@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib
	@touch $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed, $(PYTHON) \
	is %d.%d: name another one, e.g. make PYTHON=python3.12 run" % v[:2])'
	@$(PYTHON) -m venv $(VENV)
