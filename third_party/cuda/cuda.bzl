"""Compiles .cu files with nvcc. Its targets are only for where a toolkit is: reach them through a select on
//third_party/cuda:available."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@cuda_toolkit//:toolkit.bzl", "HOME", "VERSION")
load("@rules_cc//cc:defs.bzl", "cc_library")

def _generate_code(architecture):
    number, _, kind = architecture.strip().partition("-")
    code = "compute_" if kind == "ptx" else "sm_"
    return ["-gencode", "arch=compute_%s,code=%s%s" % (number, code, number)]

def _cuda_object_impl(ctx):
    if not HOME:
        fail("no CUDA toolkit: set CUDA_HOME, or depend on this target through a select on //third_party/cuda:available")
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    out = ctx.actions.declare_file(ctx.label.name + ".pic.o")
    args = ctx.actions.args()
    args.add_all(["-c", ctx.file.src, "-o", out, "-std=c++20", "-O3", "-Xcompiler", "-fPIC,-Wall,-Wextra"])
    args.add_all(["-Werror", "all-warnings"])
    # The others are for drivers from 550 on (12.4), and the runtime 12 is for those from 525 on.
    args.add("-compress-mode=speed")
    if ctx.attr._line_info[BuildSettingInfo].value:
        args.add("-lineinfo")
    for architecture in ctx.attr._architectures[BuildSettingInfo].value.split(","):
        args.add_all(_generate_code(architecture))
    # nvcc names what it writes in /tmp by its process number, which two sandboxes share.
    args.add("--objdir-as-tempdir")
    args.add_all(ctx.attr.nvcc_options)
    args.add("-I.")
    args.add_all(depset(transitive = [context.quote_includes, context.includes]), before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    ctx.actions.run(
        executable = HOME + "/bin/nvcc",
        arguments = [args],
        inputs = depset([ctx.file.src], transitive = [context.headers]),
        outputs = [out],
        # The host's compiler is the one in PATH. The version is there so that another toolkit compiles again.
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SHARDPACK_NVCC": VERSION},
        mnemonic = "CudaCompile",
        progress_message = "Compiling " + ctx.file.src.short_path,
    )
    return [DefaultInfo(files = depset([out]))]

_cuda_object = rule(
    implementation = _cuda_object_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".cu"], mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "nvcc_options": attr.string_list(),
        "_architectures": attr.label(default = "//third_party/cuda:architectures"),
        "_line_info": attr.label(default = "//third_party/cuda:line_info"),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], nvcc_options = [], tags = [], **kwargs):
    """A C++ library of .cu files. The tag "manual" is added: where there is no toolkit, //... must not want it.

    Args:
      name: the library.
      srcs: .cu files, each compiled for all of //third_party/cuda:architectures.
      hdrs: as in cc_library.
      deps: as in cc_library; the CUDA runtime is added.
      nvcc_options: further options for nvcc.
      tags: as in cc_library.
      **kwargs: passed to cc_library.
    """
    tags = tags + ["manual"]
    deps = deps + ["//third_party/cuda:cudart"]
    cc_library(
        name = name + "_headers",
        hdrs = hdrs,
        deps = deps,
        tags = tags,
        visibility = ["//visibility:private"],
    )
    for src in srcs:
        _cuda_object(
            name = src.replace(".", "_"),
            src = src,
            deps = [name + "_headers"],
            nvcc_options = nvcc_options,
            tags = tags,
            visibility = ["//visibility:private"],
        )
    cc_library(
        name = name,
        srcs = [src.replace(".", "_") for src in srcs],
        hdrs = hdrs,
        deps = deps,
        tags = tags,
        **kwargs
    )
