#include "converters/listing/skip_answers.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

// "" if only --exclude helps.
std::string_view AnswerTo(SkipReason reason) {
  switch (reason) {
    case SkipReason::kTruncated:
      return "--allow-truncated packs them";
    case SkipReason::kPixelLimit:
      return "--max-pixels raises the limit";
    case SkipReason::kTooLarge:
      return "--max-file-size raises the limit";
    case SkipReason::kOutsideRoot:
      return "--follow packs what links in folders point to";
    case SkipReason::kDuplicateKey:
      return "--on-duplicate-key suffix packs them";
    case SkipReason::kUnpaired:
      return "--missing-part says what becomes of a sample without one of its parts";
    case SkipReason::kBadLabel:
      return "--missing-part keep packs them without a label";
    default:
      return "";
  }
}

}  // namespace

std::string SkipText(std::string_view path, const Skip& skip) {
  return absl::StrCat(
      EscapeForTerminal(path), ": ", std::string(SkipReasonName(skip.reason)),
      skip.detail.empty() ? "" : absl::StrCat(" (", EscapeForTerminal(skip.detail), ")"));
}

std::string SkipAnswers(std::span<const Skip> skips, bool plan_is_given) {
  std::set<SkipReason> reasons;
  for (const Skip& skip : skips) reasons.insert(skip.reason);
  std::string text;
  for (const SkipReason reason : reasons) {
    const std::string_view answer = AnswerTo(reason);
    if (answer.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", std::string(SkipReasonName(reason)), ": ",
                    std::string(answer));
  }
  return text.empty() || !plan_is_given
             ? text
             : absl::StrCat("the plan decides these, give them to pack plan --write: ", text);
}

}  // namespace shardpack
