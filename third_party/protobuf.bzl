"""C++ from .proto files with the distribution's protoc (the usual rules would build a compiler of their own)."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def cc_system_proto_library(name, src, deps = [], **kwargs):
    """Generates and compiles the C++ classes of one .proto file.

    Include it by its path from the top of the project: `formats/tfrecord/example.pb.h`. Imports inside the .proto are
    written the same way.

    Args:
      name: the C++ library.
      src: the .proto file, in this package.
      deps: cc_system_proto_library targets whose .proto files this one imports.
      **kwargs: passed to cc_library (visibility, testonly).
    """
    if not src.endswith(".proto"):
        fail("src must be a .proto file: " + src)
    base = src[:-len(".proto")]
    repository = native.repository_name()[1:]
    root = "/external/" + repository if repository else ""

    # Importers need the .proto itself, so each target has its sources beside it.
    native.filegroup(
        name = name + "_proto_srcs",
        srcs = [src] + [dep + "_proto_srcs" for dep in deps],
        visibility = kwargs.get("visibility"),
    )
    native.genrule(
        name = name + "_gen",
        srcs = [src] + [dep + "_proto_srcs" for dep in deps],
        outs = [base + ".pb.h", base + ".pb.cc"],
        # /usr/include has google/protobuf/*.proto.
        cmd = "/usr/bin/protoc -I.%s -I/usr/include --cpp_out=$(GENDIR)%s $(execpath %s)" % (root, root, src),
        testonly = kwargs.get("testonly"),
    )
    cc_library(
        name = name,
        srcs = [base + ".pb.cc"],
        hdrs = [base + ".pb.h"],
        # Generated code is not ours to keep free of warnings.
        copts = ["-w"],
        deps = deps + ["//third_party:protobuf"],
        **kwargs
    )
