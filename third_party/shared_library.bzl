"""Linker flags that our shared libraries have in common."""

# gold, Bazel's choice, exports weak symbols of std::string in spite of a version script.
# The threads of a library may outlive its dlclose.
SHARED_LIBRARY_LINKOPTS = [
    "-fuse-ld=bfd",
    "-Wl,-z,nodelete",
] + select({
    # clang leaves the sanitizers' functions to the program.
    "//third_party/precompiled:clang": [],
    "//conditions:default": ["-Wl,-z,defs"],
})
