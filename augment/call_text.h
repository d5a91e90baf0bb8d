// CallReader: reads `name(1, key=2..3) other` - the text of programs and plans.
//
//   CallReader reader("rotate(-10..10, p=0.5) equalize");
//   while (!reader.AtEnd()) {
//     absl::StatusOr<TextCall> call = reader.Next();
//     ...
//   }
//
// A value is a number, a range of two numbers, or a word.
//
// Lifetime: names and words refer to the text.
// Errors: InvalidArgument, naming the column (from 1) and what stands there.
#ifndef SHARDPACK_AUGMENT_CALL_TEXT_H_
#define SHARDPACK_AUGMENT_CALL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardpack {

struct TextValue {
  std::string_view key;   // empty if it is given by position
  std::string_view word;  // empty for numbers
  double low = 0, high = 0;
  bool range = false;
  size_t column = 0;
};

struct TextCall {
  std::string_view name;
  std::vector<TextValue> values;
  size_t column = 0;
};

class CallReader {
 public:
  explicit CallReader(std::string_view text) : text_(text) { SkipBlanks(); }

  bool AtEnd() const { return at_ == text_.size(); }
  absl::StatusOr<TextCall> Next();
  // "column 12: " and what is wrong.
  static absl::Status ErrorAt(size_t column, std::string_view what);

 private:
  void SkipBlanks();
  bool Take(char wanted);
  std::string_view TakeWord();
  absl::StatusOr<double> TakeNumber();
  absl::StatusOr<TextValue> TakeValue();
  absl::Status Unexpected(std::string_view wanted) const;

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_CALL_TEXT_H_
