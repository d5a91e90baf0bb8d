#include "converters/published.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/plan_differences.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"

namespace shardpack {
namespace {

constexpr size_t kNamed = 5;

std::string Named(std::vector<std::string> lines) {
  const size_t count = lines.size();
  lines.resize(std::min(count, kNamed));
  if (count > kNamed) lines.push_back(absl::StrCat("... and ", count - kNamed, " more"));
  return absl::StrJoin(lines, "\n  ");
}

}  // namespace

std::vector<std::string> DifferencesFrom(const Manifest& was, const Plan& plan) {
  std::vector<std::string> lines = OptionDifferences(was.options, plan.options().ToMap());
  if (was.format != plan.format().name) {
    lines.push_back(absl::StrCat("--format was ", was.format, ", is ", std::string(plan.format().name)));
  }
  if (was.listing_digest != plan.listing().ComputeDigest()) {
    lines.push_back(absl::StrCat("the source's files differ (", was.source_files, " were packed, ",
                                 plan.listing().rows(), " are listed)"));
  }
  if (lines.empty()) lines.push_back("made by another version of pack");
  return lines;
}

absl::Status CheckPublishedFiles(const std::string& dataset, const Manifest& manifest) {
  std::vector<std::string> lines;
  for (const FileEntry& file : manifest.files) {
    const std::string path = PathInDataset(dataset, file.name);
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) {
      if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return IoStatus("look at", path, errno);
      lines.push_back(absl::StrCat(EscapeForTerminal(file.name), " is missing"));
    } else if (!S_ISREG(facts.st_mode)) {
      lines.push_back(absl::StrCat(EscapeForTerminal(file.name), " is not a file"));
    } else if (static_cast<uint64_t>(facts.st_size) != file.bytes) {
      lines.push_back(absl::StrCat(EscapeForTerminal(file.name), " has ", facts.st_size, " bytes, expected ", file.bytes));
    }
  }
  if (lines.empty()) return absl::OkStatus();
  const size_t count = lines.size();
  return absl::DataLossError(absl::StrCat(EscapeForTerminal(dataset), " is damaged: ", count, " of its ", manifest.files.size(),
                                          count == 1 ? " files is" : " files are", " not what the manifest says:\n  ",
                                          Named(std::move(lines)), "\nTo build these alone again:\n  pack repair ",
                                          ShellQuoted(dataset)));
}

absl::Status CheckSourceTimes(const std::string& dataset, const Listing& now) {
  const std::string path = PathInDataset(dataset, std::string(kManifestName));
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("look at", path, errno);
  const int64_t published = int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
  const int64_t today =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto changed = [&](int64_t time) { return time > published && time <= today; };
  const size_t fields = now.field_mtime_ns.empty() ? 0 : now.fields.size();
  std::vector<std::string> lines;
  for (uint64_t row = 0; row < now.rows(); ++row) {
    const auto parts = std::span(now.field_mtime_ns).subspan(fields * row, fields);
    if (changed(now.mtime_ns[row]) || std::any_of(parts.begin(), parts.end(), changed)) {
      lines.push_back(EscapeForTerminal(now.Path(row)));
    }
  }
  if (lines.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      EscapeForTerminal(dataset), " is whole, but files of the source were changed after it was packed:\n  ", Named(std::move(lines)),
      "\nWhether their bytes are still the same:\n  pack validate ", ShellQuoted(dataset), " --against ", ShellQuoted(now.root),
      "\nTo pack them as they are now, run the same command with --overwrite."));
}

}  // namespace shardpack
