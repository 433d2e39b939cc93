# Sourced by scripts/demo and scripts/test: makes .venv and installs the extras they ask for, once for each state of setup.cfg.
# An installed torch in setup.cfg's range is used as it is; otherwise pip brings the one that constraints.txt names.

readonly VENV="$ROOT/.venv"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$(basename "$0"): $*"
    exit 2
}

require_python() {
    PYTHON=$(command -v "${PYTHON:-python3}") || die "${PYTHON:-python3} not found (Debian: apt-get install python3 python3-pip)"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$PYTHON is older than Python 3.11; set PYTHON to a newer one"
}

# Prints the version of torch that interpreter $1 sees, when setup.cfg's range allows it.
usable_torch() {
    "$1" - "$ROOT/setup.cfg" <<'PYTHON' 2>/dev/null
import configparser, sys
from importlib.metadata import version
from pip._vendor.packaging.requirements import Requirement

setup = configparser.ConfigParser()
setup.read(sys.argv[1])
lines = setup["options.extras_require"]["worker"].split("\n")
wanted = next(Requirement(line) for line in lines if line.startswith("torch"))
found = version("torch")
sys.exit(print(found) if wanted.specifier.contains(found) else 1)
PYTHON
}

# Without python3-venv Debian has venv but no ensurepip: then the system's pip fills the environment from outside.
make_venv() {
    local see_system=()
    usable_torch "$PYTHON" >/dev/null && see_system=(--system-site-packages)
    say "making $VENV with $PYTHON ${see_system[*]}"
    "$PYTHON" -m venv "${see_system[@]}" "$VENV" >/dev/null 2>&1 && return
    rm -rf "$VENV"
    "$PYTHON" -m venv "${see_system[@]}" --without-pip "$VENV" || die "cannot make $VENV"
    "$PYTHON" -m pip --python "$VENV/bin/python" install --quiet pip || die "no pip for $VENV (Debian: apt-get install python3-pip)"
}

# install_extras EXTRAS: a stamp makes the next start quick.
install_extras() {
    local extras=$1 stamp torch constraint="$ROOT/constraints.txt"
    [[ -x $VENV/bin/python ]] || make_venv
    stamp=$(cat "$ROOT/setup.cfg" "$ROOT/constraints.txt" <(echo "$ROOT") | sha256sum | cut -c1-16)
    stamp="$VENV/.installed-${extras//,/-}-$stamp"
    [[ -e $stamp ]] && return
    if torch=$(usable_torch "$VENV/bin/python"); then
        say "using the installed torch $torch"
        constraint="$VENV/constraints.txt"
        echo "torch==$torch" >"$constraint"
    else
        say "installing commensal[$extras] into $VENV: $(tr '\n' ' ' <"$constraint")is about 200 MB to download (CPU build; several GB"
        say "where your package index serves the CUDA build), everything else about 150 MB"
    fi
    "$VENV/bin/python" -m pip install --quiet --editable "$ROOT[$extras]" --constraint "$constraint" || die "pip could not install it"
    touch "$stamp"
}
