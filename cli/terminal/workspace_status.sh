#!/usr/bin/env bash
# For `--workspace_status_command`: the commit that `pack --version` and the manifests name, with a + when there are
# changes beside it. Debian's source package, which has no .git, has the answer in a file.
if [[ -f debian/status ]]; then exec cat debian/status; fi
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
[[ -z $(git status --porcelain 2>/dev/null | head -n 1) ]] || commit+=+
echo "STABLE_GIT_COMMIT $commit"
