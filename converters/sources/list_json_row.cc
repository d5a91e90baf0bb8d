#include "converters/sources/list_json_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/sources/list_names.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxMembers = 1000;  // to remember

// Extracts path and label from one object; everything else is only checked.
class RowReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  RowReader(const ListOptions& options, std::vector<std::string>& members, JsonListRow& row)
      : options_(options),
        usual_path_(kPathNames),
        usual_label_(kLabelNames),
        members_(members),
        row_(row) {}

  bool null() override {
    if (depth_ != 1 || !wants_label_ || wants_path_) return Value("null");
    if (!options_.empty_labels) return Fail(EmptyLabel("null"));
    row_.label = "";
    return true;
  }
  bool boolean(bool) override { return Value("a boolean"); }
  bool number_integer(number_integer_t value) override { return Number(absl::StrCat(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Number(absl::StrCat(value)); }
  bool number_float(number_float_t, const string_t& text) override {
    // A double would keep only the first 17 digits of these.
    const bool whole = text.find_first_of(".eE") == text.npos;
    if (whole && !options_.fields.empty()) return Fail("a whole number beyond 64 bits: " + text);
    return Number(text);
  }
  bool string(string_t& text) override {
    if (depth_ == 1 && wants_path_) row_.path = text;
    if (depth_ == 1 && wants_label_) row_.label = text;
    return depth_ > 0 || Fail("expected an object");
  }
  bool binary(binary_t&) override { return Fail("binary data"); }
  bool start_object(size_t) override {
    if (!Open("an object")) return false;
    keys_.resize(depth_);
    keys_.back().clear();
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return Fail("expected an object, as in {\"path\": \"a.jpg\", \"label\": 1}");
    return Open("an array");
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    // Deeper levels are used only with json=.
    if (depth_ > 1 && options_.fields.empty()) return true;
    if (!keys_[depth_ - 1].insert(name).second)
      return Fail(absl::StrCat("the member ", EscapeForTerminal(name), " occurs twice"));
    if (depth_ != 1) return true;
    wants_path_ = options_.path.empty() ? usual_path_.Beats(name) : name == options_.path;
    wants_label_ = options_.label.empty() ? usual_label_.Beats(name) : name == options_.label;
    if (wants_path_) row_.path_name = name;
    if (wants_label_) row_.label_name = name;
    if (std::find(members_.begin(), members_.end(), name) == members_.end() &&
        members_.size() < kMaxMembers)
      members_.push_back(name);
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& failure) override {
    const std::string_view what = failure.what();
    const size_t colon = what.find("column");
    return Fail(absl::StrCat("not JSON", colon == what.npos ? "" : " at ",
                             std::string(what.substr(std::min(colon, what.size())))));
  }

 private:
  bool Fail(std::string why) {
    if (row_.error.empty()) row_.error = std::move(why);
    return false;
  }
  bool Value(std::string_view what) {
    if (depth_ == 0) return Fail("expected an object");
    if (depth_ != 1) return true;
    if (wants_path_) return Fail(absl::StrCat("the path is ", std::string(what)));
    if (wants_label_) return Fail(absl::StrCat("the label is ", std::string(what)));
    return true;
  }
  bool Number(std::string text) {
    if (depth_ == 1 && wants_label_) {
      row_.label = std::move(text);
      return true;
    }
    return Value("a number");
  }
  bool Open(std::string_view what) {
    if (depth_ == 1 && (wants_path_ || wants_label_)) return Value(what);
    return ++depth_ <= kMaxDepth || Fail("nested too deeply");
  }
  bool Close() {
    --depth_;
    return true;
  }

  const ListOptions& options_;
  UsualName usual_path_, usual_label_;
  std::vector<std::string>& members_;
  JsonListRow& row_;
  bool wants_path_ = false, wants_label_ = false;
  size_t depth_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the open objects, the row's first
};

std::string MissingMember(std::string_view name) {
  return absl::StrCat("no member is named ", EscapeForTerminal(name));
}

}  // namespace

JsonListRow ParseJsonRow(std::string_view text, const ListOptions& options,
                         std::vector<std::string>& members) {
  JsonListRow row;
  RowReader reader(options, members, row);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
    if (row.error.empty()) row.error = "not JSON";
  } else if (!row.path) {
    row.error = options.path.empty()
                    ? "no member is named path; --columns path=NAME says which one it is"
                    : MissingMember(options.path);
  } else if (!row.label && !options.label.empty()) {
    row.error = MissingMember(options.label);
  } else if (row.label && row.label->empty() && !options.empty_labels) {
    row.error = EmptyLabel("empty");
  }
  return row;
}

}  // namespace shardpack
