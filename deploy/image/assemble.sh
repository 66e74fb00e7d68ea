#!/bin/sh
# Puts together the file system of the image: assemble.sh BINARY OUT makes OUT/root, OUT/data and the binary's symbols.
set -eu

binary=$1
out=$2
root=$out/root
program=jupyter-mcp-gateway

mkdir -p "$root/usr/local/bin" "$root/etc/$program" "$root/etc/ssl/certs" "$root/var/lib/dpkg/status.d" \
    "$root/usr/share/doc/$program" "$out/data"
install -d -m 1777 "$root/tmp"
chmod 0770 "$out/data"

objcopy --only-keep-debug "$binary" "$out/$program.debug"
# From within OUT, since the name of the file with the symbols becomes part of the program.
install -m 0755 "$binary" "$root/usr/local/bin/$program"
strip "$root/usr/local/bin/$program"
(cd "$out" && objcopy --add-gnu-debuglink="$program.debug" "root/usr/local/bin/$program")

# The libraries that it loads, at the same places.
ldd "$binary" | sed -n 's/^.*=> \(\/[^ ]*\).*$/\1/p; s/^[[:space:]]*\(\/[^ ]*\).*$/\1/p' | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

# The packages that they are from, where scanners look for them.
for package in libc6 libgcc-s1 ca-certificates; do
    if dpkg-query --status "$package" > "$root/var/lib/dpkg/status.d/$package" 2> /dev/null; then
        mkdir -p "$root/usr/share/doc/$package"
        cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/" 2> /dev/null || true
    else
        rm "$root/var/lib/dpkg/status.d/$package"
    fi
done
cp LICENSE-APACHE LICENSE-MIT "$root/usr/share/doc/$program/"

echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
printf 'root:x:0:0::/:/sbin/nologin\nnonroot:x:65532:65532::/nonexistent:/sbin/nologin\n' > "$root/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' > "$root/etc/group"
