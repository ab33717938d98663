#!/usr/bin/env bash
# Sets up libtorch 2.11.0 for the CPU in the folder .libtorch, cut from the wheel of the package index.
# It needs Linux on x86_64, python3 with pip, gcc and binutils; it downloads 531 MB, keeps about 400 MB,
# and needs about 1 GB while it works. It does nothing where the folder is complete already.
#
#   scripts/get-libtorch.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.11.0
# The wheel torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl.
checksum=7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
dest=${1:-.libtorch}

if [ -f "$dest/build-version" ]; then
  echo "$dest is there already ($(cat "$dest/build-version"))"
  exit 0
fi
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "libtorch is set up on Linux on x86_64 only; elsewhere set LIBTORCH to a folder of libtorch $version" >&2
  exit 1
fi
for tool in python3 gcc strip readelf nm; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing: install python3 with pip, gcc and binutils first" >&2
    exit 1
  fi
done

mkdir -p "$(dirname "$dest")"
work=$(mktemp -d "$(dirname "$dest")/.libtorch-work.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp" "$work/wheel"

# The platform is named, so that it is the same file whatever Python runs pip.
echo "torch==$version --hash=sha256:$checksum" >"$work/wanted.txt"
if ! TMPDIR=$(cd "$work/tmp" && pwd) python3 -m pip download --quiet --no-cache-dir --no-deps --require-hashes \
  --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
  --platform manylinux_2_28_x86_64 --dest "$work/wheel" --requirement "$work/wanted.txt"; then
  echo "libtorch was not downloaded: pip could not get torch $version (see above)" >&2
  exit 1
fi

python3 - "$work" <<'PY'
import glob, sys, zipfile
work = sys.argv[1]
wheel = zipfile.ZipFile(glob.glob(work + "/wheel/*.whl")[0])
libraries = ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1")
def wanted(name):
    licence = ".dist-info/" in name and name.rsplit("/", 1)[1] in ("LICENSE", "NOTICE")
    return name in libraries or name.startswith("torch/include/") or licence
wheel.extractall(work, [name for name in wheel.namelist() if wanted(name)])
PY
rm -rf "$work/wheel"
torch=$work/torch
mv "$work"/torch-*.dist-info "$torch/licence"
strip --strip-unneeded "$torch/lib/libtorch_cpu.so" "$torch/lib/libc10.so"

# The profiler in libtorch_cpu.so names two libraries of the GPU. Stand-ins take their place: they have
# the names and versions that are asked for, and every function answers that there is no GPU.
for library in libcudart libcupti; do
  name=$(readelf -d "$torch/lib/libtorch_cpu.so" | grep -o "$library\.so\.[0-9]*" | head -1 || true)
  [ -n "$name" ] || continue
  nm -D --undefined-only "$torch/lib/libtorch_cpu.so" | grep -o "[A-Za-z0-9_]*@$name" | cut -d@ -f1 | sort -u |
    while read -r symbol; do
      case $symbol in
        *ErrorString) echo "const char *$symbol(int e) { (void)e; return \"there is no GPU in this build\"; }" ;;
        *) echo "int $symbol(void) { return 100; }" ;;
      esac
    done >"$work/stand-in.c"
  echo "$name { global: *; };" >"$work/stand-in.map"
  gcc -shared -fPIC -O1 -w -Wl,-soname,"$name" -Wl,--version-script="$work/stand-in.map" \
    -o "$torch/lib/$name" "$work/stand-in.c"
done
# Programs are linked with libtorch.so; the real one would ask for the library of the GPU.
echo 'int daedal_cpu_only;' | gcc -shared -fPIC -xc - -Wl,-soname,libtorch.so -o "$torch/lib/libtorch.so"
if LD_BIND_NOW=1 ldd -r "$torch/lib/libtorch_cpu.so" | grep -E "not found|undefined"; then
  echo "libtorch is incomplete: the names above are missing" >&2
  exit 1
fi
# The build checks that this is the version it was written for.
echo "$version" >"$torch/build-version"
rm -rf "$dest"
mv "$torch" "$dest"
du -sh "$dest"
