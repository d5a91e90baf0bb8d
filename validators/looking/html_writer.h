// HtmlWriter: writes HTML in which only what stands in the source code is markup.
//
//   HtmlWriter page;
//   page.Open("p", {{"class", "note"}});   // names: constants, checked when this is compiled
//   page.Text(class_name);                 // any bytes, escaped
//   page.Close();
//   std::string html = std::move(page).Take();
//
// Text and values of attributes come out as they are read, with what would harm a page or mislead
// its reader (control characters, marks of direction, bytes that are not UTF-8) as \xNN.
//
// Lifetime: owns its text.
// Thread-safety: one caller at a time.
// Errors: an element that is closed too often, or not at all, aborts.
#ifndef SHARDPACK_VALIDATORS_LOOKING_HTML_WRITER_H_
#define SHARDPACK_VALIDATORS_LOOKING_HTML_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardpack {

// Text that stands in the source code.
class MarkupName {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): that is its purpose.
  consteval MarkupName(const char* name) : name_(name) {
    for (const char* c = name; *c != '\0'; ++c) {
      const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= '0' && *c <= '9') || *c == '-';
      if (!fits) throw "the name of an element or attribute";
    }
  }
  const char* name() const { return name_; }

 private:
  const char* name_;
};

// Whole passages that stand in the source code: style sheets.
class TrustedText {
 public:
  consteval explicit TrustedText(const char* text) : text_(text) {}
  const char* text() const { return text_; }

 private:
  const char* text_;
};

class HtmlWriter {
 public:
  struct Attribute {
    MarkupName name;
    std::string value;
  };

  HtmlWriter() = default;
  HtmlWriter(const HtmlWriter&) = delete;
  HtmlWriter& operator=(const HtmlWriter&) = delete;

  void Open(MarkupName element, std::initializer_list<Attribute> attributes = {});
  void Close();
  void Empty(MarkupName element, std::initializer_list<Attribute> attributes);  // img, meta, br
  void Text(std::string_view text);
  // <element>text</element>
  void Element(MarkupName element, std::string_view text,
               std::initializer_list<Attribute> attributes = {});
  void Trusted(TrustedText text) { out_ += text.text(); }
  void NewLine() { out_ += '\n'; }
  // What another writer wrote, all of whose elements are closed.
  void Append(HtmlWriter&& part) { out_ += std::move(part).Take(); }

  size_t size() const { return out_.size(); }
  std::string Take() &&;

 private:
  void Start(MarkupName element, std::initializer_list<Attribute> attributes);
  std::string out_;
  std::vector<MarkupName> open_;
};

// The text as it stands in HTML.
std::string HtmlEscape(std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_HTML_WRITER_H_
