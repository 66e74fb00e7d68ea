"""Writes a wheel with nothing in it into the folder given, so that pip can install something offline."""

import pathlib
import sys
import zipfile

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
INFO = "tiny-1.0.dist-info"
with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny.py", "")
    wheel.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{INFO}/RECORD", "")
