#!/usr/bin/env bash
# Make .venv with a Python that is new enough and install Clew with its development tools into it.
# usage: tools/setup_venv.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."

wanted="${1:-python3}"

is_new_enough() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

python=""
for candidate in "$wanted" python3.11 python3.12 python3.13; do
    if is_new_enough "$candidate"; then
        python="$candidate"
        break
    fi
done
if [ -z "$python" ]; then
    found="$("$wanted" --version 2>&1 || true)"
    echo "setup: Clew needs Python 3.11 or newer; '$wanted' is: ${found:-not found}." >&2
    echo "setup: install a newer Python, then say which one: make setup PYTHON=/path/to/python3.11" >&2
    exit 1
fi

if [ -d .venv ] && ! is_new_enough .venv/bin/python; then
    echo "setup: .venv has no working Python of version 3.11 or newer; making it anew"
    rm -rf .venv
fi
if ! [ -x .venv/bin/pip ]; then
    echo "setup: making .venv with $("$python" --version 2>&1)"
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 &&
        [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
        echo "setup: installing python$version-venv"
        apt-get -qq update >/dev/null || true
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y "python$version-venv" >/dev/null || true
    fi
    if ! "$python" -m venv .venv; then
        echo "setup: '$python -m venv' failed. On Debian and Ubuntu, install the package python3-venv and try again." >&2
        exit 1
    fi
fi

echo "setup: installing Clew and its dependencies into .venv (the first time, a few minutes: PySpark is large)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
.venv/bin/python -c 'import hypothesis, msgpack, psycopg, pyarrow, pyspark' # Fail here, not in the first test.
echo "setup: Python packages are ready"
