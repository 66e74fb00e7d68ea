#!/bin/sh
# Leaves of a source tree what says which dependencies it has, with empty programs in place of the real ones.
set -eu

find . -type f ! -name Cargo.toml ! -name Cargo.lock -delete
find . -type d -empty -delete
find . -name Cargo.toml | while read -r manifest; do
    package=$(dirname "$manifest")
    mkdir -p "$package/src"
    : > "$package/src/lib.rs"
done
mkdir -p tests/it benches
echo 'fn main() {}' | tee src/main.rs tests/it/main.rs benches/main.rs > /dev/null
