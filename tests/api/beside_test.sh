#!/bin/bash
# The library finds the `pack` of its own prefix, wherever in its lib folder it is, and by whichever path it was loaded.
set -euo pipefail
library=$PWD/api/libshardpack.so.0
prefix=$TEST_TMPDIR/prefix
deep=$prefix/lib/x86_64-linux-gnu
mkdir -p "$deep" "$prefix/bin" "$TEST_TMPDIR/bin"
cp -L "$library" "$deep/libshardpack.so.0"
cat > "$TEST_TMPDIR/start.py" <<'END'
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
os.chdir("/")
library.shardpack_version.restype = ctypes.c_char_p
library.shardpack_error_message.restype = ctypes.c_char_p
library.shardpack_error_message.argtypes = library.shardpack_job_release.argtypes = [ctypes.c_void_p]
library.shardpack_job_poll.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
library.shardpack_job_exit_code.argtypes = [ctypes.c_void_p]
with open(sys.argv[2], "w") as program:
  program.write('#!/bin/sh\n[ "$1" = --version ] && echo "pack %s (shardpack, commit 0)" && exit\nexit 42\n'
                % library.shardpack_version().decode())
os.chmod(sys.argv[2], 0o755)
words = (ctypes.c_char_p * 2)(b"validate", b"x")
job, error = ctypes.c_void_p(), ctypes.c_void_p()
code = library.shardpack_job_start(words, ctypes.c_size_t(2), None, ctypes.byref(job), ctypes.byref(error))
found = code == 0
if found:
  library.shardpack_job_poll(job, -1, None, None)
  found = library.shardpack_job_exit_code(job) == 42
  library.shardpack_job_release(job)
if found != (sys.argv[3] == "found"):
  sys.exit("%s: code %d: %s" % (" ".join(sys.argv[1:]), code, library.shardpack_error_message(error).decode()))
END
export PATH=/usr/bin:/bin
unset SHARDPACK_PACK
start() { /usr/bin/python3 "$TEST_TMPDIR/start.py" "$@"; rm "$2"; }
start "$deep/libshardpack.so.0" "$prefix/bin/pack" found
# Relative to the working folder of that time.
(cd "$prefix/lib" && LD_LIBRARY_PATH=x86_64-linux-gnu start libshardpack.so.0 "$prefix/bin/pack" found)
# Through a link.
ln -s "$deep/libshardpack.so.0" "$TEST_TMPDIR/link.so"
start "$TEST_TMPDIR/link.so" "$prefix/bin/pack" found
# What is above the prefix is somebody else's.
start "$deep/libshardpack.so.0" "$TEST_TMPDIR/bin/pack" absent
