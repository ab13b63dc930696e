# `make demo` and `make test` do everything on a fresh machine: both install into .venv first, with the versions that
# constraints.txt pins. Installing the pinned torch by name takes its CPU build where the index has one.
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := .venv/ready
# Two processes leave two cores idle for nearly half of the time: tests wait for clocks, disks and services.
SHARED := -n 3 --dist worksteal
# Some tests wait for browsers, services and clocks, on machines that may be busy. What fails is run once more, and is
# listed with an R at the end: something to look at.
AGAIN := --reruns 1 -rR
# Where processes can be forked, mypy has one for each of two cores.
WORKERS := $(if $(filter Windows_NT,$(OS)),,-n 2)

.PHONY: demo test test-gpu kills mutants check-style coverage docs wheel install clean

demo: $(READY)
	$(BIN)/python -m demo

# The tests of the page need Chromium, those of clients for Node need Node and npm; they say so and skip where there is none.
# One thread for each of the workers: more would fight over the cores of a small machine. Each worker has tests
# that stand together, so that what a file of tests sets up is set up once, and takes over from the others at the end.
# The kernels for GPUs run a second time, by Triton's interpreter, which has to be asked for before it is imported;
# those for CPUs need no second time.
test: $(READY) check-style
	@command -v chromium >/dev/null || test "$$(id -u)" != 0 || (apt-get update && apt-get install -y chromium) >/dev/null 2>&1 || true
	@$(MAKE) --no-print-directory .node-clients/ready 2>/dev/null || true
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) $(AGAIN)
	TRITON_INTERPRET=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) tests/kernels --ignore tests/kernels/test_native.py

.node-clients/ready: tests/server/node_clients.json
	@command -v npm >/dev/null
	mkdir -p .node-clients
	cp $< .node-clients/package.json
	npm install --silent --no-audit --no-fund --fetch-retries 0 --fetch-timeout 20000 --prefix .node-clients
	touch $@

# Everything that needs a GPU, on one; PYTHON is an interpreter whose torch knows it. It needs pytest, pytest-xdist and
# hypothesis besides what training does: other tests, which need more, are not even imported.
test-gpu:
	$(PYTHON) -m pytest -m gpu $$(grep -rl 'mark\.gpu' tests)

# Training, killed before each of its file-system events: 430 runs, which take half an hour.
kills: $(READY)
	PYTHONPATH=. OMP_NUM_THREADS=1 $(BIN)/python tests/kills.py

# Forty bugs put into a copy of the package on purpose; the tests have to notice at least 38.
mutants: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutants.py

check-style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(WORKERS)

# The tests once more, counting the lines they run; pyproject.toml has the floor. Counting is cheaper from Python 3.12 on.
coverage: $(READY)
	core=$$($(BIN)/python -c "import sys; print('sysmon' if sys.version_info >= (3, 12) else 'ctrace')"); \
	COVERAGE_CORE=$$core OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) $(AGAIN) --cov --cov-report=term

# The site, into site/: strictly, and from what is installed alone.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.venv/docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

wheel: $(READY)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

install: $(READY)

# The native library for CPUs is compiled on the way: by the system's compiler, or by one from PyPI where there is none.
# Where neither can be had, torch computes instead, and the tests of the library say so and skip.
$(READY): pyproject.toml constraints.txt $(wildcard dragoman/kernels/cpu/*.cpp dragoman/kernels/cpu/*.h)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch==2.13.0
	@command -v c++ >/dev/null || command -v g++ >/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt ziglang || true
	command -v c++ >/dev/null || command -v g++ >/dev/null || \
		export CC="$(CURDIR)/$(BIN)/python -m ziglang cc" CXX="$(CURDIR)/$(BIN)/python -m ziglang c++"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv .node-clients models/demo site .mypy_cache .ruff_cache .pytest_cache
