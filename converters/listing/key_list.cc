#include "converters/listing/key_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/text_marks.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr std::string_view kDatasetMark = "# of the dataset ",
                           kCountMark = "# keys: ", kHash = "%23";

}  // namespace

std::string KeyListText(const std::string& identity, const std::vector<std::string>& keys) {
  std::string text = absl::StrCat(std::string(kKeyListMark), std::string(kDatasetMark), identity,
                                  "\n", std::string(kCountMark), keys.size(), "\n");
  for (const std::string& key : keys) {
    const std::string escaped = PercentEscape(key);
    if (escaped.starts_with('#')) {
      absl::StrAppend(&text, std::string(kHash), escaped.substr(1), "\n");
    } else {
      absl::StrAppend(&text, escaped, "\n");
    }
  }
  return text;
}

absl::StatusOr<KeyList> ParseKeyList(std::string_view text, const std::string& file) {
  KeyList list{.file = file, .dataset = "", .written = std::nullopt, .keys = {}};
  text = WithoutByteOrderMark(text);
  if (BeginsWithUtf16Mark(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(file), " is UTF-16; keys are taken as UTF-8"));
  }
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // an editor's; a key's is %0D
    if (line.starts_with(kDatasetMark)) list.dataset = line.substr(kDatasetMark.size());
    uint64_t count = 0;
    if (line.starts_with(kCountMark) &&
        absl::SimpleAtoi(std::string(line.substr(kCountMark.size())), &count))
      list.written = count;
    if (line.empty() || line.starts_with('#')) continue;
    const bool hash = line.starts_with(kHash);
    const std::optional<std::string> key = PercentUnescape(line.substr(hash ? kHash.size() : 0));
    if (!key) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeForTerminal(file), " line ", number, ": ", EscapeForTerminal(line),
                       " is not a key as pack dups writes it: write % as %25, and bytes that are "
                       "not readable text as %XX"));
    }
    list.keys.push_back(absl::StrCat(hash ? "#" : "", *key));
  }
  // pack dups found no copies; an empty list of another origin is more likely a mistake.
  if (!list.keys.empty() || list.written == 0) return list;
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeForTerminal(file), " has no key: there is nothing to leave out"));
}

}  // namespace shardpack
