#!/bin/sh
# Packs a release: dist.sh BINARY OUT writes OUT/jupyter-mcp-gateway-VERSION-PLATFORM.tar.gz, its symbols and checksums. With GNU tar the
# same sources make the same archive.
set -eu

binary=$1
out=$2
version=$("$binary" --version | cut -d ' ' -f 2)
name=jupyter-mcp-gateway-$version-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/$name/completions" "$work/$name/man"

install -m 0755 "$binary" "$work/$name/jupyter-mcp-gateway"
if command -v objcopy > /dev/null; then
    objcopy --only-keep-debug "$binary" "$out/$name.debug"
fi
strip "$work/$name/jupyter-mcp-gateway"
for shell in bash elvish fish powershell zsh; do
    "$binary" completions "$shell" > "$work/$name/completions/jupyter-mcp-gateway.$shell"
done
"$binary" manual "$work/$name/man"
cp -R LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md SECURITY.md docs skills config "$work/$name/"
cp deploy/systemd/jupyter-mcp-gateway.service "$work/$name/"

fixed=
if tar --version | grep -q GNU; then
    fixed="--sort=name --owner=0 --group=0 --numeric-owner --mtime=@${SOURCE_DATE_EPOCH:-0}"
fi
# shellcheck disable=SC2086 # it is a list
tar -C "$work" $fixed -cf "$work/archive.tar" "$name"
gzip -n -9 < "$work/archive.tar" > "$out/$name.tar.gz"
(cd "$out" && if command -v sha256sum > /dev/null; then sha256sum "$name".*; else shasum -a 256 "$name".*; fi > SHA256SUMS)
echo "$out/$name.tar.gz"
