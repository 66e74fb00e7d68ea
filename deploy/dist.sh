#!/bin/sh
# Packs a release: dist.sh BINARY OUT writes OUT/jupyter-mcp-gateway-VERSION-PLATFORM.tar.gz, its symbols, a package for Debian and Ubuntu where
# that can be made, and checksums of all that. With GNU tar the same binary and sources make the same archive.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
binary=$1
out=$2
program=jupyter-mcp-gateway
version=$("$binary" --version | cut -d ' ' -f 2)
name=$program-$version-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/$name/completions" "$work/$name/man"
out=$(cd "$out" && pwd)
packed="$name.tar.gz"

install -m 0755 "$binary" "$work/$name/$program"
strip "$work/$name/$program"
if command -v objcopy > /dev/null; then
    objcopy --only-keep-debug --compress-debug-sections "$binary" "$out/$name.debug"
    # From within OUT, since the name of the file with the symbols becomes part of the program.
    (cd "$out" && objcopy --add-gnu-debuglink="$name.debug" "$work/$name/$program")
    packed="$packed $name.debug"
fi
for shell in bash elvish fish powershell zsh; do
    "$binary" completions "$shell" > "$work/$name/completions/$program.$shell"
done
"$binary" manual "$work/$name/man"
cp -R LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md SECURITY.md docs skills config "$work/$name/"
cp deploy/systemd/jupyter-mcp-gateway.service deploy/systemd/gateway.toml "$work/$name/"

export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}"
fixed=
if tar --version | grep -q GNU; then
    fixed="--sort=name --owner=0 --group=0 --numeric-owner --mtime=@$SOURCE_DATE_EPOCH"
fi
# shellcheck disable=SC2086 # it is a list
tar -C "$work" $fixed -cf "$work/archive.tar" "$name"
gzip -n -9 < "$work/archive.tar" > "$out/$name.tar.gz"
if command -v dpkg-deb > /dev/null; then
    packed="$packed $(sh "$here/deb/pack.sh" "$work/$name" "$version" "$out")"
else
    echo "dist: there is no dpkg-deb here, so no package for Debian" >&2
fi
# shellcheck disable=SC2086 # it is a list
(cd "$out" && if command -v sha256sum > /dev/null; then sha256sum $packed; else shasum -a 256 $packed; fi > SHA256SUMS)
for file in $packed; do echo "$out/$file"; done
