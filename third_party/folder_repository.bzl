"""A folder of third_party/bazel as a repository, in this workspace and in others that use it (whose own folders are all
that local_repository could name)."""

_THIS = Label("//third_party:folder_repository.bzl")

def _folder_repository_impl(repository_ctx):
    folder = repository_ctx.path(_THIS).dirname.get_child("bazel").get_child(repository_ctx.name)
    for file in folder.readdir():
        repository_ctx.symlink(file, file.basename)

    # As native.repository_name() names it.
    repository_ctx.file("ours.bzl", "OURS = %r\n" % ("@" + _THIS.workspace_root[len("external/"):]))

folder_repository = repository_rule(
    implementation = _folder_repository_impl,
    # What is linked to may have changed: looked at again when Bazel starts.
    local = True,
)
