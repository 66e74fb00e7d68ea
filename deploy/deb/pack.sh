#!/bin/sh
# Makes a package for Debian and Ubuntu of what dist.sh has put together: pack.sh FOLDER VERSION OUT writes OUT/jupyter-mcp-gateway_VERSION_ARCH.deb
# and says its name.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
from=$1
version=$2
out=$3
program=jupyter-mcp-gateway
arch=$(dpkg --print-architecture)
file=${program}_${version}_$arch.deb
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# What mktemp makes is its owner's alone.
chmod 0755 "$root"
umask 022

put() { install -D -m 0644 "$from/$1" "$root/$2"; }
install -D -m 0755 "$from/$program" "$root/usr/bin/$program"
put gateway.toml "etc/$program/gateway.toml"
mkdir -p "$root/usr/lib/systemd/system"
sed '1,/^$/d; s#/usr/local/bin/#/usr/bin/#' "$from/$program.service" > "$root/usr/lib/systemd/system/$program.service"
put "completions/$program.bash" "usr/share/bash-completion/completions/$program"
put "completions/$program.fish" "usr/share/fish/vendor_completions.d/$program.fish"
put "completions/$program.zsh" "usr/share/zsh/vendor-completions/_$program"
for page in "$from"/man/*; do
    put "man/$(basename "$page")" "usr/share/man/man1/$(basename "$page")"
done
doc=usr/share/doc/$program
put CHANGELOG.md "$doc/changelog"
put README.md "$doc/README.md"
put SECURITY.md "$doc/SECURITY.md"
cp -R "$from/docs" "$from/skills" "$root/$doc/"
put config/default.toml "$doc/examples/default.toml"
{
    printf 'License: Apache-2.0 or MIT, at your option. The first is in /usr/share/common-licenses/Apache-2.0.\n\n'
    cat "$from/LICENSE-MIT"
} > "$root/$doc/copyright"
gzip -n -9 "$root/$doc/changelog" "$root"/usr/share/man/man1/*

# The oldest C library that has all that the program asks for.
libc=$(objdump -T "$root/usr/bin/$program" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -1)
mkdir "$root/DEBIAN"
cat > "$root/DEBIAN/control" << CONTROL
Package: $program
Version: $version
Architecture: $arch
Maintainer: ${MAINTAINER:-The jupyter-mcp-gateway authors <root@localhost>}
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: libc6 (>= $libc), libgcc-s1
Recommends: ca-certificates
Section: net
Priority: optional
Description: one MCP endpoint for many agents, live in many Jupyter servers
 Agents connect with a URL and a token and work in notebooks beside the people
 who have them open. The gateway knows the Jupyter servers; agents do not.
 .
 Name your servers and tokens in /etc/jupyter-mcp-gateway/gateway.toml, then:
 systemctl enable --now jupyter-mcp-gateway
CONTROL
echo "/etc/$program/gateway.toml" > "$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 0755 "$here/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"
chmod -R u=rwX,go=rX "$root"
dpkg-deb --root-owner-group --build "$root" "$out/$file" > /dev/null
echo "$file"
