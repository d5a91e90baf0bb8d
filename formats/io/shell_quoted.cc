#include "formats/io/shell_quoted.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "formats/io/file.h"

namespace shardpack {
namespace {

std::string& Program() {
  static auto* const program = new std::string("pack");
  return *program;
}

}  // namespace

std::string ShellQuoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./=,:+@%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  const std::string escaped = EscapeForTerminal(word);
  // Only $'...' can hold escaped characters.
  std::string out = escaped == word ? "'" : "$'";
  for (const char c : escaped) {
    if (c == '\'') {
      out += escaped == word ? "'\\''" : "\\'";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string TypedProgram() { return ShellQuoted(Program()); }

void SetProgram(std::string program) { Program() = std::move(program); }

}  // namespace shardpack
