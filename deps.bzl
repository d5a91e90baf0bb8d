"""What Shardpack is built from: another project's WORKSPACE calls shardpack_dependencies() (docs/install.md)."""

load("//third_party:folder_repository.bzl", "folder_repository")
load("//third_party/cuda:toolkit.bzl", "cuda_toolkit")

# Bazel 4 looks the first four up by name even for a pure C++ build. Debian ships them as sources.
_DEBIAN_FOLDERS = {
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
    "platforms": "/usr/share/bazel/tools/platforms",
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
}

def shardpack_dependencies():
    """Declares the repositories that are not declared yet. None touches the network: all is in Debian packages."""
    for name, path in _DEBIAN_FOLDERS.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)

    # Debian's rules_cc is newer than its Bazel can load; this one re-exports the native rules under the same labels, so
    # that BUILD files keep working when a newer Bazel brings the real one.
    # remote_coverage_tools is asked for by every test rule, used by none of ours: the real one is a download.
    for name in ["rules_cc", "remote_coverage_tools"]:
        if not native.existing_rule(name):
            folder_repository(name = name)

    # The machine's CUDA toolkit, if it has one; everything builds without.
    if not native.existing_rule("cuda_toolkit"):
        cuda_toolkit(name = "cuda_toolkit")
