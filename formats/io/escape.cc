#include "formats/io/escape.h"

#include <algorithm>
#include <cstdint>

namespace shardpack {
namespace {

constexpr char kDigits[] = "0123456789ABCDEF";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool IsUtf8(std::string_view text) {
  if (IsAscii(text)) return true;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t HarmfulLength(std::string_view text) {
  if (text.empty()) return 0;
  const size_t length = Utf8SequenceLength(text);
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 0) return 1;
  if (length == 1) return byte(0) < 0x20 || byte(0) == 0x7F ? 1 : 0;
  if (length == 2) {
    const bool c1 = byte(0) == 0xC2 && byte(1) < 0xA0;
    const bool arabic_letter_mark = byte(0) == 0xD8 && byte(1) == 0x9C;
    return c1 || arabic_letter_mark ? 2 : 0;
  }
  if (length != 3 || byte(0) != 0xE2) return 0;
  // U+200E, U+200F; U+2028 (line end) to U+202E; U+2066 to U+2069 (Unicode Standard Annex 9).
  const bool mark = byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F);
  const bool embedding = byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE;
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
  return mark || embedding || isolate ? 3 : 0;
}

std::string EscapeHarmful(std::string_view text) {
  static constexpr char kLower[] = "0123456789abcdef";
  const auto hex = [](std::string& out, uint32_t value, int digits) {
    while (digits-- > 0) out.push_back(kLower[value >> (4 * digits) & 15]);
  };
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = HarmfulLength(text);
    const auto byte = [&](size_t i) {
      return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
    };
    if (length == 0 || text[0] == '\n' || text[0] == '\t' || text[0] == '\r' || text[0] == '\x1b') {
      const size_t whole = std::max<size_t>(Utf8SequenceLength(text), 1);
      out.append(text.substr(0, whole));
      text.remove_prefix(whole);
      continue;
    }
    out.append(length == 1 ? "\\x" : "\\u");
    if (length == 1) hex(out, byte(0), 2);
    if (length == 2) hex(out, (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F), 4);
    if (length == 3) hex(out, (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 4);
    text.remove_prefix(length);
  }
  return out;
}

std::string PercentEscape(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t length = Utf8SequenceLength(bytes);
    const auto lead = static_cast<unsigned char>(bytes[0]);
    if (length == 0 || lead < 0x20 || lead == 0x7F || lead == '%') {
      out.push_back('%');
      out.push_back(kDigits[lead >> 4]);
      out.push_back(kDigits[lead & 15]);
      length = 1;
    } else {
      out.append(bytes.substr(0, length));
    }
    bytes.remove_prefix(length);
  }
  return out;
}

std::vector<std::string> PercentEscapeAll(std::span<const std::string> texts) {
  std::vector<std::string> escaped;
  for (const std::string& text : texts) escaped.push_back(PercentEscape(text));
  return escaped;
}

std::optional<std::string> PercentUnescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]), low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high << 4 | low));
    i += 2;
  }
  // Rejects other spellings: escaped bytes that need no escape, or raw bytes that do.
  if (PercentEscape(out) != text) return std::nullopt;
  return out;
}

}  // namespace shardpack
