#!/bin/sh
# Packs the bundle for desktop clients: pack.sh OUT writes OUT/jupyter-mcp-gateway-VERSION.mcpb. Needs npm; MODULES names a node_modules
# that is installed already, MCPB another program that packs.
set -eu

here=$(dirname "$0")
out=$1
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$here/manifest.json")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/bundle"
cp "$here/manifest.json" "$here/package.json" "$here/package-lock.json" "$here/../../LICENSE-APACHE" "$here/../../LICENSE-MIT" "$work/bundle/"
if [ -n "${MODULES:-}" ]; then
    cp -R "$MODULES" "$work/bundle/node_modules"
else
    (cd "$work/bundle" && npm ci --ignore-scripts --no-audit --no-fund)
fi
# Links to programs, which do not survive being packed.
rm -rf "$work/bundle/node_modules/.bin"
file=$(cd "$out" && pwd)/jupyter-mcp-gateway-$version.mcpb
# shellcheck disable=SC2086 # a program with its arguments
${MCPB:-npx --yes @anthropic-ai/mcpb@2.1.2} pack "$work/bundle" "$file"
echo "$file"
