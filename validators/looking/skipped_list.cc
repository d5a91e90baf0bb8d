#include "validators/looking/skipped_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kSkippedName = "skipped.jsonl";
constexpr uint64_t kMaxSkippedBytes = uint64_t{1} << 30;

// The bytes of a member of a line; empty if there is none.
std::string MemberText(const nlohmann::json& line, const char* name) {
  if (!line.is_object()) return "";
  const auto found = line.find(name);
  if (found == line.end() || !found->is_string()) return "";
  const std::string& text = found->get_ref<const std::string&>();
  return PercentUnescape(text).value_or(text);
}

}  // namespace

SkippedList ParseSkippedList(std::string_view text) {
  SkippedList list;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto line = nlohmann::json::parse(text.substr(0, end), nullptr, false);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++list.count;
    SkippedInput input{MemberText(line, "path"), MemberText(line, "reason"),
                       MemberText(line, "detail")};
    const bool many = list.by_reason.size() >= SkippedList::kMostReasons;
    if (input.reason.empty() || (many && !list.by_reason.contains(input.reason)))
      input.reason = "unknown";
    if (++list.by_reason[input.reason] <= SkippedList::kMostOfAReason)
      list.first.push_back(std::move(input));
  }
  return list;
}

absl::StatusOr<SkippedList> ReadSkippedList(const std::string& dataset, const Manifest& manifest) {
  const auto entry = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [](const FileEntry& file) { return file.name == kSkippedName; });
  if (entry == manifest.files.end()) return SkippedList();
  const std::string path = absl::StrCat(dataset, "/", std::string(kSkippedName));
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxSkippedBytes));
  if (text.size() != entry->bytes || Xxh3_128(AsBytes(text)) != entry->xxh3_128) {
    return absl::DataLossError(
        absl::StrCat(EscapeForTerminal(path), " is not the file that the manifest describes"));
  }
  return ParseSkippedList(text);
}

}  // namespace shardpack
