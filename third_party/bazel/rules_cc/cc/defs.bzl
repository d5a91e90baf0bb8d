"""The native C++ rules under the labels of rules_cc; our C++ source files begin with a precompiled header.

The sources of a library are compiled in units of several files (docs/decisions/0032-units.md)."""

load("//:ours.bzl", "OURS")
load("@shardpack//third_party/precompiled:precompiled.bzl", "TEST_COPTS")

_PRECOMPILED = "@shardpack//third_party/precompiled:"

# gcc 12 forgets for these that a precompiled header is one of the system.
_NO_WARNINGS = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"]

# As many files of a library as are compiled at once, at most. With more, a change waits longer for little gain.
# A library with the tag "one_by_one" has none.
_UNIT_FILES = 12

def _in_units(name, srcs):
    """The same sources, several to a generated file; messages and stack traces still name the real file and line."""
    files = [src for src in srcs if src.endswith(".cc") and ":" not in src]
    if len(files) < 2:
        return None
    count = (len(files) + _UNIT_FILES - 1) // _UNIT_FILES
    units = []
    for i in range(count):
        unit = "%s_unit_%d.cc" % (name, i)
        native.genrule(
            name = unit[:-len(".cc")],
            srcs = files[i * len(files) // count:(i + 1) * len(files) // count],
            outs = [unit],
            cmd = "for file in $(SRCS); do echo \"#line 1 \\\"$$file\\\"\"; cat $$file; done >$@",
            tags = ["manual"],
            visibility = ["//visibility:private"],
        )
        units.append(unit)
    return select({
        _PRECOMPILED + "off": srcs,
        _PRECOMPILED + "separate": srcs,
        "//conditions:default": [src for src in srcs if src not in files] + units,
    })

def _with_precompiled(rule, srcs = [], deps = [], copts = [], **kwargs):
    # Another workspace may load this file too.
    ours = native.repository_name() == OURS
    if ours and type(srcs) == "list" and [src for src in srcs if src.endswith(".cc")] and not [src for src in srcs if src.endswith(".c")]:
        tested = rule == native.cc_test and [src for src in srcs if src.endswith("_test.cc")]
        header = "test" if tested else "library"
        include = "third_party/precompiled/pch/%s.h" % header
        deps = deps + select({
            _PRECOMPILED + "off": [],
            "//conditions:default": [_PRECOMPILED + header],
        })
        copts = copts + select({
            _PRECOMPILED + "off": [],
            # clang does not look for a compiled header in the folders of -iquote.
            _PRECOMPILED + "clang": ["-include", "$(BINDIR)/" + include],
            "//conditions:default": ["-include", include] + _NO_WARNINGS,
        })

        if tested:
            copts = copts + TEST_COPTS

        # In another workspace the flags are not those of our .bazelrc.
        if native.repository_name() != "@":
            copts = ["-std=c++20"] + copts
        if rule == native.cc_library and "one_by_one" not in kwargs.get("tags", []):
            units = _in_units(kwargs["name"], srcs)
            if units:
                srcs = units

                # gcc takes the files of a unit for headers.
                copts = copts + ["-Wno-subobject-linkage"]
    rule(srcs = srcs, deps = deps, copts = copts, **kwargs)

def cc_binary(**kwargs):
    _with_precompiled(native.cc_binary, **kwargs)

def cc_library(**kwargs):
    _with_precompiled(native.cc_library, **kwargs)

def cc_test(**kwargs):
    _with_precompiled(native.cc_test, **kwargs)

cc_import = native.cc_import
cc_proto_library = native.cc_proto_library
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_import = native.objc_import
objc_library = native.objc_library
