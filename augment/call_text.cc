#include "augment/call_text.h"

#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// The longest text of a number, and of a range's first one.
constexpr size_t kMaxNumber = 64;
constexpr size_t kMaxValues = 16;  // of a call

bool IsWordStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsWordPart(char c) {
  return IsWordStart(c) || absl::ascii_isdigit(static_cast<unsigned char>(c));
}

}  // namespace

absl::Status CallReader::ErrorAt(size_t column, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ": ", std::string(what)));
}

absl::Status CallReader::Unexpected(std::string_view wanted) const {
  std::string found = "the text ends";
  if (!AtEnd()) {
    const char c = text_[at_];
    found = absl::ascii_isprint(static_cast<unsigned char>(c))
                ? absl::StrCat("'", std::string(1, c), "' stands")
                : absl::StrCat("byte ", static_cast<int>(static_cast<unsigned char>(c)), " stands");
  }
  return ErrorAt(at_ + 1, absl::StrCat(found, " where ", std::string(wanted), " is expected"));
}

void CallReader::SkipBlanks() {
  while (!AtEnd() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
}

bool CallReader::Take(char wanted) {
  SkipBlanks();
  if (AtEnd() || text_[at_] != wanted) return false;
  ++at_;
  SkipBlanks();
  return true;
}

std::string_view CallReader::TakeWord() {
  if (AtEnd() || !IsWordStart(text_[at_])) return {};
  const size_t begin = at_;
  while (!AtEnd() && IsWordPart(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

absl::StatusOr<double> CallReader::TakeNumber() {
  // Two dots end the first number of a range, even where one of them could belong to it.
  std::string_view rest = text_.substr(at_, kMaxNumber);
  const size_t dots = rest.find("..");
  if (dots != std::string_view::npos) rest = rest.substr(0, dots);
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(rest.size() > 1 ? 1 : 0);
  double value = 0;
  const char* const begin = rest.data();
  const auto [end, error] = std::from_chars(begin, begin + rest.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return Unexpected("a number");
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

absl::StatusOr<TextValue> CallReader::TakeValue() {
  TextValue value;
  value.column = at_ + 1;
  if (const std::string_view word = TakeWord(); !word.empty()) {
    if (!Take('=')) {
      value.word = word;
      return value;
    }
    value.key = word;
    if (value.word = TakeWord(); !value.word.empty()) return value;
  }
  ASSIGN_OR_RETURN(value.low, TakeNumber());
  value.high = value.low;
  if (text_.substr(at_, 2) == "..") {
    at_ += 2;
    value.range = true;
    ASSIGN_OR_RETURN(value.high, TakeNumber());
    if (value.high < value.low) return ErrorAt(value.column, "a range begins with its least value");
  }
  return value;
}

absl::StatusOr<TextCall> CallReader::Next() {
  TextCall call;
  call.column = at_ + 1;
  call.name = TakeWord();
  if (call.name.empty()) return Unexpected("a name");
  if (Take('(') && !Take(')')) {
    do {
      ASSIGN_OR_RETURN(TextValue value, TakeValue());
      if (call.values.size() == kMaxValues)
        return ErrorAt(value.column, absl::StrCat("more than ", kMaxValues, " parameters"));
      call.values.push_back(value);
    } while (Take(','));
    if (!Take(')')) return Unexpected("',' or ')'");
  }
  SkipBlanks();
  return call;
}

}  // namespace shardpack
