# Every target sets up what it needs in .venv: a dependency group of pyproject.toml is installed when a target first asks
# for it, and again when pyproject.toml changes. A stamp file in .venv/.stamps says what is installed.

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done)
BIN    := .venv/bin
STAMPS := .venv/.stamps
# Most tests wait most of the time, for servers and their clocks.
JOBS   ?= 3
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# reasoning-gym needs a package that is published as C source only, so a compiler that finds Python's headers.
COMPILER := $(BIN)/python -c 'import os, sysconfig as s; print(os.environ.get("CC") or s.get_config_var("CC") or "cc")'
HEADERS  := $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'
COMPILES := printf '\043include <Python.h>\n' | $$($(COMPILER)) -fsyntax-only -I"$$($(HEADERS))" -x c - >/dev/null 2>&1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test check bench docs clean compiler

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMPS)/package compiler $(STAMPS)/examples ## play real episodes against a real server
	@$(BIN)/python examples/demo.py

test: $(STAMPS)/test ## run every test that can run on this machine
	@if [ -e $(STAMPS)/examples ] || { $(COMPILES); }; then $(MAKE) --no-print-directory $(STAMPS)/examples; \
	else echo 'make test: without a C compiler the tests on reasoning-gym are skipped'; fi
	@$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile $(ARGS)

check: $(STAMPS)/check ## lint, formatting, types, who imports whom
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(STAMPS)/test ## measure, and write bench/RESULTS.md (ARGS=--quick: within 6 minutes)
	@$(BIN)/python bench/run.py $(ARGS)

docs: $(STAMPS)/docs ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean: ## remove the virtual environments, caches and what was built
	rm -rf .venv .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache site dist build
	find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

compiler:
	@[ -e $(STAMPS)/examples ] || { $(COMPILES); } || { \
	echo 'make demo needs a C compiler and the headers of Python: one dependency of reasoning-gym is published as source.'; \
	echo 'Debian and Ubuntu: apt-get install build-essential python3-dev; Fedora: dnf install gcc python3-devel;'; \
	echo 'macOS: xcode-select --install.'; exit 1; } >&2

$(STAMPS)/venv:
	@[ -n '$(PYTHON)' ] || { echo 'Python 3.11 or later is needed; name one with make PYTHON=...' >&2; exit 1; }
	@echo 'Setting up .venv ...'
	@$(PYTHON) -m venv .venv
	@$(PIP) install --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/package: $(STAMPS)/venv pyproject.toml
	@echo 'Installing ors-kit into .venv ...'
	@$(PIP) install --editable .
	@touch $@

$(STAMPS)/%: $(STAMPS)/package pyproject.toml
	@echo 'Installing the dependency group $* into .venv ...'
	@$(PIP) install --group $*
	@touch $@
