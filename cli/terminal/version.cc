#include "cli/terminal/version.h"

#include <isa-l.h>
#include <openssl/opensslv.h>
#include <sqlite3.h>
#include <tbb/version.h>
#include <xxhash.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "cli/terminal/commit_stamp.h"  // generated: kCommit
#include "images/codecs/codec_versions.h"

namespace shardpack::cli {
namespace {

std::string XxhashVersion() {
  const unsigned version = ::XXH_versionNumber();
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace

std::map<std::string, std::string> ToolVersions() {
  std::map<std::string, std::string> versions = {
      {"version", std::string(kVersion)},
      {"commit", kCommit},
      {"abseil", absl::StrCat(ABSL_LTS_RELEASE_VERSION, ".", ABSL_LTS_RELEASE_PATCH_LEVEL)},
      {"cli11", CLI11_VERSION},
      {"isa-l", absl::StrCat(ISAL_MAJOR_VERSION, ".", ISAL_MINOR_VERSION, ".", ISAL_PATCH_VERSION)},
      {"nlohmann-json", absl::StrCat(NLOHMANN_JSON_VERSION_MAJOR, ".", NLOHMANN_JSON_VERSION_MINOR,
                                     ".", NLOHMANN_JSON_VERSION_PATCH)},
      {"openssl", OPENSSL_VERSION_STR},
      {"sqlite", ::sqlite3_libversion()},
      {"tbb", ::TBB_runtime_version()},
      {"xxhash", XxhashVersion()},
  };
  versions.merge(CodecVersions());
  return versions;
}

std::string VersionText() {
  std::map<std::string, std::string> versions = ToolVersions();
  std::string out =
      absl::StrCat("pack ", versions["version"], " (shardpack, commit ", versions["commit"], ")\n");
  versions.erase("version");
  versions.erase("commit");
  std::string libraries;
  for (const auto& [name, version] : versions) {
    absl::StrAppend(&libraries, libraries.empty() ? "" : ", ", name, " ", version);
  }
  return absl::StrCat(out, libraries, "\n");
}

}  // namespace shardpack::cli
