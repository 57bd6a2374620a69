# Everything works from a fresh clone with Python 3.11 or newer, make and the package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# uv does not compile what it installs: without bytecode on disk, every process compiles its imports again, for seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check test-light test-slow test-lowest lint format bench peers docs docs-links docs-serve release-check clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# An environment, and what to install into it. uv takes seconds where pip takes a minute; pip serves where uv does not.
define install
$(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install --quiet --upgrade "pip>=25.1" "uv>=0.8"
VIRTUAL_ENV=$(abspath $(1)) $(1)/bin/uv pip install --quiet $(2) --editable ".[all]" || \
  $(1)/bin/python -m pip install --quiet $(2) --editable ".[all]"
endef

$(INSTALLED): pyproject.toml constraints.txt
	$(call install,$(VENV),--constraint constraints.txt --group dev)
	@touch $(INSTALLED)

demo: $(INSTALLED)  ## Train a Neural ODE and a C-NODE of equal size on digits, and write a report, in about two minutes
	$(BIN)/charax reproduce table1 --budget demo --table-only --output runs/demo
	$(BIN)/charax report runs/demo/classify-digits-node-seed0 runs/demo/classify-digits-c-node-seed0 --output runs/demo/report.html
	@echo "Open runs/demo/report.html in a browser: both runs side by side, with figures that move."

# Most of the time of the tests is compilation of programs that run once: not optimizing them saves two fifths of it;
# with the older emitters of fused loops, gradients of solvers take two fifths less again, and an eighth less if a
# program is not split into parts that are compiled in parallel.
FAST := XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
  --xla_cpu_parallel_codegen_split_count=1"
LIGHT := nn fields data cli

test: $(INSTALLED)  ## The fast tests; PACKAGE=solve for those of one package
	$(FAST) $(BIN)/python -m pytest -q -n 2 --dist worksteal $(if $(PACKAGE),tests/$(PACKAGE))

check: $(INSTALLED)  ## Ruff, pyright, import order and the tests of the light packages, in about a minute
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lint test-light

test-light: $(INSTALLED)
	$(FAST) $(BIN)/python -m pytest -q -n 2 --dist worksteal $(addprefix tests/,$(LIGHT)) tests/test_docstrings.py

test-slow: $(INSTALLED)  ## The tests that take minutes
	$(BIN)/python -m pytest -q -n 2 -m slow

test-lowest:  ## The fast tests with the oldest supported versions of the dependencies
	$(call install,.venv-lowest,--constraint constraints-lowest.txt --group dev)
	.venv-lowest/bin/python -m pytest -q -n 2

lint: $(INSTALLED)  ## Ruff, pyright and the order of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

format: $(INSTALLED)  ## Let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED) peers  ## Timings against peers in PyTorch; ROWS=1,3 runs some of the rows
	$(BIN)/python -m benchmarks $(if $(ROWS),--rows $(ROWS))

peers: .venv-peers/.installed  ## The environment of the peers, which the package never needs
.venv-peers/.installed: constraints-peers.txt
	python3 -m venv .venv-peers
	# torch first and by itself, for the CPU build; then what the others need of it, which must not replace it.
	.venv-peers/bin/python -m pip install --quiet "$$(grep '^torch==' constraints-peers.txt)"
	.venv-peers/bin/python -m pip install --quiet --no-deps $$(grep -v '^#\|^torch==' constraints-peers.txt)
	touch $@

docs: .venv-docs/.installed  ## Build the site into docs/_build/html; its examples are executed, and warnings are errors
	.venv-docs/bin/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "The site is docs/_build/html/index.html"

docs-links: .venv-docs/.installed  ## Check the links of the site to other hosts; needs a network
	.venv-docs/bin/python -m sphinx -b linkcheck -q docs docs/_build/linkcheck

docs-serve: docs  ## Build the site and serve it on this machine
	.venv-docs/bin/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

.venv-docs/.installed: pyproject.toml constraints.txt constraints-docs.txt
	$(call install,.venv-docs,--constraint constraints.txt --constraint constraints-docs.txt --group docs)
	@touch $@

release-check:  ## Build the distributions, check them, and try the wheel in a clean environment
	rm -rf dist .venv-release
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --upgrade "pip>=25.1" build twine
	.venv-release/bin/python -m build --outdir dist .
	.venv-release/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-release/bin/python -m pip install --quiet --constraint constraints.txt "$$(ls dist/*.whl)[all]"
	cd dist && ../.venv-release/bin/python -P ../.ci/release_check.py ../README.md

clean:  ## Remove environments and caches
	rm -rf .venv .venv-lowest .venv-docs .venv-release dist docs/_build docs/reference/api docs/reference/cli.md .cache .pytest_cache .ruff_cache .hypothesis
