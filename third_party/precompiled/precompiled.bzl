"""Compiles a header once for all source files that begin with it, which `-include` sees to (third_party/bazel/rules_cc)."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Tests run once, and are most of what a change compiles: gcc takes half of the time for them. glibc's checks want an optimisation.
TEST_COPTS = ["-O0", "-U_FORTIFY_SOURCE"]

def _precompiled_header_impl(ctx):
    # Beside its source it would not be found: the compiler looks for NAME.gch where it first meets NAME.
    header = ctx.actions.declare_file("pch/" + ctx.file.src.basename)
    compiled = ctx.actions.declare_file("pch/" + ctx.file.src.basename + ".gch")
    ctx.actions.symlink(output = header, target_file = ctx.file.src)

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    cpp = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = cpp.copts + cpp.cxxopts,
        use_pic = True,
    )
    args = ctx.actions.args()
    args.add_all(cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    ))
    root = ctx.label.workspace_root
    if root:
        # As third_party/bazel/rules_cc has it for what begins with this header.
        args.add("-std=c++20")
    args.add_all(ctx.attr.copts)
    args.add_all(["-I" + (root or "."), "-x", "c++-header", ctx.file.src, "-o", compiled])
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = [args],
        inputs = depset([ctx.file.src] + ctx.files.hdrs, transitive = [toolchain.all_files]),
        outputs = [compiled],
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + ctx.file.src.short_path,
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset([header, compiled] + ctx.files.sources),
    ))]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(doc = "Must be those of the files that begin with it."),
        "hdrs": attr.label_list(allow_files = [".h"], doc = "What `src` includes of ours."),
        "sources": attr.label_list(allow_files = [".h"], doc = "What the compiler names as included, beside the precompiled header."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
