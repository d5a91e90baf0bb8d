#include "formats/npy/npy_layout.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// NumPy cannot read shapes with more dimensions.
constexpr size_t kMaxDimensions = 32;

// Parses the subset of Python literals that headers use.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  // {'descr': '<i8', 'fortran_order': False, 'shape': (3,), }, the keys in any order.
  bool Parse(NpyHeader* header) {
    bool descr = false, order = false, shape = false;
    if (!Take('{')) return false;
    while (!Take('}')) {
      const std::optional<std::string_view> key = String();
      if (!key || !Take(':')) return false;
      if (*key == "descr" && !descr) {
        descr = Descr(&header->descr);
        if (!descr) return false;
      } else if (*key == "fortran_order" && !order) {
        order = true;
        header->fortran_order = Word("True");
        if (!header->fortran_order && !Word("False")) return false;
      } else if (*key == "shape" && !shape) {
        shape = Shape(&header->shape);
        if (!shape) return false;
      } else {
        return false;  // numpy.load refuses other keys, too
      }
      if (!Take(',') && !Peek('}')) return false;
    }
    Blank();
    return descr && order && shape && text_.empty();
  }

 private:
  void Blank() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool Peek(char wanted) {
    Blank();
    return !text_.empty() && text_[0] == wanted;
  }
  bool Take(char wanted) {
    if (!Peek(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Word(std::string_view word) {
    Blank();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> String() {
    Blank();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[0], 1);
    if (end == text_.npos) return std::nullopt;
    const std::string_view content = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return content;
  }
  // Skips a structure's list of fields: strings, numbers and brackets.
  bool Descr(std::string* descr) {
    if (const auto text = String()) {
      *descr = std::string(*text);
      return true;
    }
    if (!Peek('[')) return false;
    for (int open = 0;;) {
      Blank();
      if (text_.empty()) return false;
      if (text_[0] == '\'' || text_[0] == '"') {
        if (!String()) return false;
        continue;
      }
      if (text_[0] == '[' || text_[0] == '(') ++open;
      if (text_[0] == ']' || text_[0] == ')') --open;
      text_.remove_prefix(1);
      if (open == 0) return true;
    }
  }
  bool Shape(std::vector<uint64_t>* shape) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      uint64_t value = 0;
      size_t digits = 0;
      Blank();
      for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
        const auto digit = static_cast<uint64_t>(text_[digits] - '0');
        if (value > (INT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
      }
      if (digits == 0 || shape->size() == kMaxDimensions) return false;
      text_.remove_prefix(digits);
      Word("L");  // from Python 2
      shape->push_back(value);
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view text_;
};

}  // namespace

std::string ParseNpyHeader(Bytes file, NpyHeader* header) {
  *header = {};
  const std::string_view text = AsText(file);
  if (!text.starts_with(kNpyMagic)) return "the file does not begin with \\x93NUMPY";
  // Versions 1.0, 2.0 and 3.0 (numpy/lib/format.py): a length of 2 or 4 bytes, then ASCII or UTF-8.
  if (text.size() < 10) return "the header is cut";
  const auto major = static_cast<uint8_t>(text[6]), minor = static_cast<uint8_t>(text[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return absl::StrCat("version ", major, ".", minor, " is not known");
  }
  const size_t prefix = major == 1 ? 10 : 12;
  if (text.size() < prefix) return "the header is cut";
  const uint64_t length =
      major == 1 ? LoadLittle<uint16_t>(text.data() + 8) : LoadLittle<uint32_t>(text.data() + 8);
  if (length > kMaxNpyHeaderBytes) return absl::StrCat("a header of ", length, " bytes");
  if (length > text.size() - prefix) return "the header is cut";
  if (!DictParser(text.substr(prefix, length)).Parse(header)) {
    return "the header is not a dictionary of descr, fortran_order and shape";
  }
  header->data_offset = prefix + length;
  return "";
}

std::string NpyShapeText(std::span<const uint64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string MakeNpyHeader(std::string_view descr, std::span<const uint64_t> shape) {
  std::string text =
      absl::StrCat("{'descr': '", absl::string_view(descr.data(), descr.size()),
                   "', 'fortran_order': False, 'shape': ", NpyShapeText(shape), ", }");
  constexpr size_t kPrefixBytes = 10;
  text.resize(kNpyHeaderBytes - kPrefixBytes - 1, ' ');
  text.push_back('\n');
  std::string header(kNpyMagic);
  header.append("\x01\0", 2);
  header.push_back(static_cast<char>(text.size()));
  header.push_back('\0');
  return header + text;
}

}  // namespace shardpack
