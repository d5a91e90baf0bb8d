#include "validators/looking/html_writer.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "formats/io/escape.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

// Code points that are not characters, which HTML does not allow: U+FDD0 to U+FDEF, and the last
// two of each plane.
bool IsNoCharacter(std::string_view sequence) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(sequence[at]); };
  if (sequence.size() == 3 && byte(0) == 0xEF && byte(1) == 0xB7)
    return byte(2) >= 0x90 && byte(2) <= 0xAF;
  const size_t last = sequence.size() - 1;
  if (sequence.size() < 3 || byte(last) < 0xBE || byte(last - 1) != 0xBF) return false;
  return sequence.size() == 3 ? byte(0) == 0xEF : (byte(1) & 0x0F) == 0x0F;
}

}  // namespace

std::string HtmlEscape(std::string_view text) {
  const std::string readable = EscapeForTerminal(text);
  std::string out;
  out.reserve(readable.size());
  for (std::string_view rest = readable; !rest.empty();) {
    const size_t length = Utf8SequenceLength(rest);
    const std::string_view sequence = rest.substr(0, length == 0 ? 1 : length);
    rest.remove_prefix(sequence.size());
    if (sequence == "&") {
      out += "&amp;";
    } else if (sequence == "<") {
      out += "&lt;";
    } else if (sequence == ">") {
      out += "&gt;";
    } else if (sequence == "\"") {
      out += "&quot;";
    } else if (sequence == "'") {
      out += "&#39;";
    } else if (IsNoCharacter(sequence)) {
      out += "\uFFFD";
    } else {
      out += sequence;
    }
  }
  return out;
}

void HtmlWriter::Start(MarkupName element, std::initializer_list<Attribute> attributes) {
  out_ += '<';
  out_ += element.name();
  for (const Attribute& attribute : attributes) {
    out_ += ' ';
    out_ += attribute.name.name();
    out_ += "=\"";
    out_ += HtmlEscape(attribute.value);
    out_ += '"';
  }
  out_ += '>';
}

void HtmlWriter::Open(MarkupName element, std::initializer_list<Attribute> attributes) {
  Start(element, attributes);
  open_.push_back(element);
}

void HtmlWriter::Close() {
  if (open_.empty()) {
    std::fputs("HtmlWriter: no element is open\n", stderr);
    std::abort();
  }
  out_ += "</";
  out_ += open_.back().name();
  out_ += '>';
  open_.pop_back();
}

void HtmlWriter::Empty(MarkupName element, std::initializer_list<Attribute> attributes) {
  Start(element, attributes);
}

void HtmlWriter::Text(std::string_view text) { out_ += HtmlEscape(text); }

void HtmlWriter::Element(MarkupName element, std::string_view text,
                         std::initializer_list<Attribute> attributes) {
  Open(element, attributes);
  Text(text);
  Close();
}

std::string HtmlWriter::Take() && {
  if (!open_.empty()) {
    std::fprintf(stderr, "HtmlWriter: <%s> is not closed\n", open_.back().name());
    std::abort();
  }
  return std::move(out_);
}

}  // namespace shardpack
