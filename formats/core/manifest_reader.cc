#include "formats/core/manifest_reader.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"

namespace shardpack::manifest_internal {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;
using Shards = std::vector<ManifestShard>;
using Files = std::vector<FileEntry>;

template <typename... Kinds>
bool HoldsAnyOf(const Target& target) {
  return (std::holds_alternative<Kinds>(target) || ...);
}

class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(Object root) : root_(std::move(root)) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Fail("null is not allowed"); }
  bool boolean(bool) override { return Fail("a boolean is not allowed"); }
  bool binary(binary_t&) override { return Fail("binary is not allowed"); }
  bool number_float(number_float_t, const string_t& text) override {
    return Fail(absl::StrCat("expected an integer below 2^64, actual ", text.substr(0, 40)));
  }
  bool number_integer(number_integer_t number) override;
  bool number_unsigned(number_unsigned_t number) override;
  bool string(string_t& text) override;
  bool start_object(size_t) override;
  bool start_array(size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool end_array() override {
    stack_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override;

 private:
  // One open object, map or array.
  struct Frame {
    std::string path;  // for messages
    Target open;
    std::vector<bool> seen;  // which members of an object were seen
    size_t current = 0;      // the member whose value comes next
    std::string key;         // its name, in a map
  };

  // The innermost open value, if it is of that kind.
  template <typename Kind>
  Kind* Top() {
    return stack_.empty() ? nullptr : std::get_if<Kind>(&stack_.back().open);
  }
  // The target of an object's next value; null in a map, in an array and at the start.
  Target* Value() {
    Object* const members = Top<Object>();
    return members == nullptr ? nullptr : &(*members)[stack_.back().current].target;
  }
  // The same, if the target is of that kind.
  template <typename Kind>
  Kind* Value() {
    Target* const target = Value();
    return target == nullptr ? nullptr : std::get_if<Kind>(target);
  }
  template <typename To, typename From>
  bool Store(To& to, From number) {
    if (!std::in_range<To>(number)) return Fail(absl::StrCat("the number is too large: ", number));
    to = static_cast<To>(number);
    return true;
  }
  bool Fail(const std::string& why);
  // The path of the next value.
  std::string Path();
  bool Open(Target target);

  Object root_;
  std::vector<Frame> stack_;
  std::string problem_;
};

bool Reader::Fail(const std::string& why) {
  const std::string path = Path();
  problem_ = absl::StrCat(path.empty() ? "" : absl::StrCat(EscapeForTerminal(path), ": "),
                          EscapeForTerminal(why));
  return false;
}

std::string Reader::Path() {
  if (stack_.empty()) return "";
  const Frame& top = stack_.back();
  const auto element = [&](size_t index) { return absl::StrCat(top.path, "[", index, "]"); };
  if (Texts** texts = Top<Texts*>()) return element((*texts)->size());
  if (Shards** shards = Top<Shards*>()) return element((*shards)->size() - 1);
  if (Files** files = Top<Files*>()) return element((*files)->size() - 1);
  Object* const members = Top<Object>();
  const std::string name = members == nullptr ? top.key : std::string((*members)[top.current].name);
  return top.path.empty() ? name : absl::StrCat(top.path, ".", name);
}

bool Reader::Open(Target target) {
  Frame frame;
  frame.path = Path();
  if (const auto* members = std::get_if<Object>(&target)) frame.seen.resize(members->size());
  frame.open = std::move(target);
  stack_.push_back(std::move(frame));
  return true;
}

bool Reader::number_integer(number_integer_t number) {
  if (auto* into = Value<int64_t*>()) return Store(**into, number);
  return Fail(absl::StrCat("a negative number is not allowed: ", number));
}

bool Reader::number_unsigned(number_unsigned_t number) {
  if (auto* counts = Top<CountMap*>()) return Store((**counts)[stack_.back().key], number);
  if (auto* into = Value<uint64_t*>()) return Store(**into, number);
  if (auto* into = Value<uint32_t*>()) return Store(**into, number);
  if (auto* into = Value<int64_t*>()) return Store(**into, number);
  return Fail("a number is not allowed");
}

bool Reader::string(string_t& text) {
  std::optional<std::string> bytes = PercentUnescape(text);
  if (!bytes) return Fail("a string is not in the %XX form");
  if (auto* texts = Top<Texts*>()) {
    (*texts)->push_back(*std::move(bytes));
  } else if (auto* map = Top<TextMap*>()) {
    (**map)[stack_.back().key] = *std::move(bytes);
  } else if (auto* into = Value<std::string*>()) {
    **into = *std::move(bytes);
  } else if (auto* digest = Value<Digest*>()) {
    const std::optional<Digest> parsed = ParseDigest(*bytes);
    if (!parsed) return Fail("expected 32 lower-case hexadecimal digits");
    **digest = *parsed;
  } else {
    return Fail("a string is not allowed");
  }
  return true;
}

bool Reader::start_object(size_t) {
  if (stack_.empty()) {
    return root_.empty() ? Fail("a second value") : Open(std::exchange(root_, {}));
  }
  if (auto* shards = Top<Shards*>()) return Open(MembersOf((*shards)->emplace_back()));
  if (auto* files = Top<Files*>()) return Open(MembersOf((*files)->emplace_back()));
  const Target* const target = Value();
  if (target == nullptr || !HoldsAnyOf<Object, TextMap*, CountMap*>(*target)) {
    return Fail("an object is not allowed");
  }
  return Open(*target);
}

bool Reader::start_array(size_t) {
  const Target* const target = Value();
  if (target == nullptr || !HoldsAnyOf<Texts*, Shards*, Files*>(*target)) {
    return Fail("an array is not allowed");
  }
  return Open(*target);
}

bool Reader::key(string_t& name) {
  Frame& top = stack_.back();
  std::optional<std::string> bytes = PercentUnescape(name);
  if (!bytes) return Fail("a member's name is not in the %XX form");
  Object* const members = Top<Object>();
  if (members == nullptr) {
    top.key = *std::move(bytes);
    TextMap** const texts = Top<TextMap*>();
    const bool fresh = texts != nullptr ? (*texts)->try_emplace(top.key).second
                                        : (*Top<CountMap*>())->try_emplace(top.key).second;
    return fresh || Fail("the member comes twice");
  }
  const auto member = std::find_if(members->begin(), members->end(),
                                   [&](const Member& m) { return m.name == *bytes; });
  if (member == members->end()) return Fail(absl::StrCat("unknown member ", *bytes));
  top.current = static_cast<size_t>(member - members->begin());
  if (top.seen[top.current]) return Fail("the member comes twice");
  top.seen[top.current] = true;
  return true;
}

bool Reader::end_object() {
  Frame& top = stack_.back();
  for (size_t i = 0; i < top.seen.size(); ++i) {
    if (top.seen[i] || (*Top<Object>())[i].optional) continue;
    top.current = i;
    return Fail("the member is missing");
  }
  stack_.pop_back();
  return true;
}

bool Reader::parse_error(size_t position, const std::string&,
                         const nlohmann::detail::exception& error) {
  if (problem_.empty()) {
    // Without the library's name for the kind of error.
    const std::string_view what = error.what();
    const size_t name = what.starts_with('[') ? what.find("] ") : what.npos;
    problem_ = absl::StrCat("malformed JSON at offset ", position, ": ",
                            std::string(name == what.npos ? what : what.substr(name + 2)));
  }
  return false;
}

}  // namespace

std::string ReadManifestText(std::string_view json, Manifest& manifest, Envelope& envelope) {
  Reader reader(MembersOf(manifest, envelope));
  return Json::sax_parse(json.begin(), json.end(), &reader) ? "" : reader.problem();
}

}  // namespace shardpack::manifest_internal
