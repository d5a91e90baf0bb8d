"""Archives for Linux systems other than the one that builds: see README.md."""

# Linked statically into pack (third_party/), so no library beside it tells that they are inside.
STATIC_IN_PACK = [
    "libabsl-dev",
    "libaec-dev",
    "libarchive-dev",
    "libbz2-dev",
    "libcli11-dev",
    "libhdf5-dev",
    "libssl-dev",
    "nettle-dev",
    "nlohmann-json3-dev",
]

_SCRIPTS = [
    "archives.py",
    "graft.py",
    "licences.py",
]

# The system's libraries, which Bazel does not know, are inside: never from a cache that outlives this folder.
_TAGS = ["no-remote-cache"]

def _python(script, arguments):
    return "PYTHONDONTWRITEBYTECODE=1 python3 $(location {}) {} --instead $(location :libjbig.so.0) --out $@".format(script, arguments)

def portable_tarball(name, tree, out):
    native.genrule(
        name = name,
        srcs = [tree, ":libjbig.so.0"],
        outs = [out],
        cmd = _python("make_tarball.py", "--tree $(location %s)" % tree),
        message = "Packing",
        tags = _TAGS,
        tools = ["make_tarball.py"] + _SCRIPTS,
        visibility = ["//:repository"],
    )

def portable_wheel(name, pack, library, python, out):
    command = _python("make_wheel.py", " ".join([
        "--pack $(location %s)" % pack,
        "--library $(location %s)" % library,
        "--python $(locations %s)" % python,
        "--readme $(location //:README.md)",
        "--license $(location //:LICENSE)",
        "--static " + " ".join(STATIC_IN_PACK),
    ]))
    native.genrule(
        name = name,
        srcs = [pack, library, python, ":libjbig.so.0", ":nvidia-cuda-runtime", "//:LICENSE", "//:README.md"],
        outs = [out],
        cmd = select({
            "//third_party/cuda:available": command + " --notices $(location :nvidia-cuda-runtime)",
            "//conditions:default": command,
        }),
        message = "Packing",
        tags = _TAGS,
        tools = ["make_wheel.py"] + _SCRIPTS,
        visibility = ["//:repository"],
    )
