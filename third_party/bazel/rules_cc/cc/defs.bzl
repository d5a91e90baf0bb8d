"""The native C++ rules under the labels of rules_cc; our C++ source files begin with a precompiled header."""

load("//:ours.bzl", "OURS")

_PRECOMPILED = "@shardpack//third_party/precompiled:"

# gcc 12 forgets for these that a precompiled header is one of the system.
_NO_WARNINGS = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"]

def _with_precompiled(rule, srcs = [], deps = [], copts = [], **kwargs):
    # Another workspace may load this file too.
    ours = native.repository_name() == OURS
    if ours and type(srcs) == "list" and [src for src in srcs if src.endswith(".cc")] and not [src for src in srcs if src.endswith(".c")]:
        tested = rule == native.cc_test and [src for src in srcs if src.endswith("_test.cc")]
        header = "test" if tested else "library"
        deps = deps + select({
            _PRECOMPILED + "off": [],
            "//conditions:default": [_PRECOMPILED + header],
        })
        copts = copts + select({
            _PRECOMPILED + "off": [],
            "//conditions:default": ["-include", "third_party/precompiled/pch/%s.h" % header] + _NO_WARNINGS,
        })

        # In another workspace the flags are not those of our .bazelrc.
        if native.repository_name() != "@":
            copts = ["-std=c++20"] + copts
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
