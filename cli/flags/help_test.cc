// Tests everything made from the tables: help pages, manual, completions, docs/cli.md.
#include "cli/flags/help.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/flags/completions.h"
#include "cli/flags/flags.h"
#include "cli/flags/manual.h"

namespace shardpack::cli {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void ExpectOneScreen(const std::string& page) {
  const std::vector<std::string> lines = Lines(page);
  EXPECT_LE(lines.size(), kHelpLines);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), kHelpColumns) << line;
    EXPECT_FALSE(line.ends_with(" ")) << line;
  }
  EXPECT_TRUE(page.ends_with("\n"));
}

TEST(Help, EachPageFitsAScreen) {
  ExpectOneScreen(Overview());
  for (const VerbSpec& verb : AllVerbs()) {
    SCOPED_TRACE(verb.name);
    const std::string page = VerbHelp(verb.verb);
    ExpectOneScreen(page);
    // The example comes before the usage, and the exit codes come last.
    EXPECT_LT(page.find(verb.example), page.find("Usage:"));
    EXPECT_LT(page.find("Usage:"), page.find("Exit codes: 0 done"));
    for (const Flag* flag : FlagsOf(verb.verb)) {
      if (flag->name == "version") continue;
      EXPECT_NE(page.find(std::string(flag->name)), std::string::npos) << flag->name;
    }
  }
}

TEST(Help, TheLongPageExplainsEveryFlag) {
  for (const VerbSpec& verb : AllVerbs()) {
    SCOPED_TRACE(verb.name);
    std::string page = VerbHelp(verb.verb, /*all=*/true);
    for (const std::string& line : Lines(page)) EXPECT_LE(line.size(), kHelpColumns) << line;
    for (size_t at = 0; (at = page.find('\n', at)) != std::string::npos;) {  // join lines
      page.replace(at,
                   page.find_first_not_of(" \n", at) == std::string::npos
                       ? 1
                       : page.find_first_not_of(" \n", at) - at,
                   " ");
      ++at;
    }
    for (const Flag* flag : FlagsOf(verb.verb))
      EXPECT_NE(page.find(flag->doc), std::string::npos) << flag->name;
  }
}

TEST(Flags, TheTableIsInOrder) {
  for (const VerbSpec& verb : AllVerbs()) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const Flag* flag : FlagsOf(verb.verb)) {
      EXPECT_TRUE(names.insert(flag->name).second) << verb.name << " has two --" << flag->name;
      if (flag->letter != 0) {
        EXPECT_TRUE(letters.insert(flag->letter).second)
            << verb.name << " has two -" << flag->letter;
      }
      EXPECT_FALSE(flag->doc.empty());
      EXPECT_FALSE(flag->doc.ends_with('.')) << flag->doc;
      EXPECT_NE(flag->store, nullptr);
      EXPECT_EQ(flag->value.empty(),
                flag->kind == FlagKind::kSwitch || flag->kind == FlagKind::kNegatable)
          << flag->name;
      EXPECT_EQ(flag->name.find("no-shuffle"), std::string_view::npos);
    }
  }
}

TEST(Generated, NamesEveryFlagAndVerb) {
  const std::string pages[] = {ManualPage(), MarkdownReference(), BashCompletions(),
                               ZshCompletions(), FishCompletions()};
  for (const std::string& page : pages) {
    for (const VerbSpec& verb : AllVerbs())
      EXPECT_NE(page.find(verb.name), std::string::npos) << verb.name;
    for (const Flag& flag : AllFlags()) {
      std::string name(flag.name);
      if (&page == &pages[0]) {
        for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
          name.insert(at, 1, '\\');
      }
      EXPECT_NE(page.find(name), std::string::npos) << name;
    }
  }
}

int ShellAccepts(const std::string& text, const char* shell) {
  const std::string path = testing::TempDir() + "/completions";
  std::ofstream(path) << text;
  return std::system((std::string(shell) + " -n " + path).c_str());
}

TEST(Generated, BashReadsItsCompletions) {
  EXPECT_EQ(ShellAccepts(BashCompletions(), "bash"), 0);
  EXPECT_NE(ShellAccepts("case x in\n", "bash"), 0);  // bash -n detects an error
}

// The completions for a command line whose last word is being typed.
std::string Completed(const std::string& words) {
  const std::string script = testing::TempDir() + "/complete.sh",
                    answer = testing::TempDir() + "/answer";
  // There must be no files that completions of file names could find.
  std::ofstream(script) << BashCompletions() << "mkdir -p " << testing::TempDir() << "/empty && cd "
                        << testing::TempDir() << "/empty\n"
                        << "COMP_WORDS=(" << words
                        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_pack\n"
                        << "printf '%s ' \"${COMPREPLY[@]}\" >" << answer << "\n";
  EXPECT_EQ(std::system(("bash " + script).c_str()), 0);
  std::string line;
  std::getline(std::ifstream(answer), line);
  return line;
}

TEST(Generated, BashCompletesFlagsValuesAndVerbs) {
  EXPECT_EQ(Completed("pack vali"), "validate ");
  EXPECT_EQ(Completed("pack photos --shard-s"), "--shard-size ");
  EXPECT_EQ(Completed("pack photos -f tf"), "tfrecord ");
  EXPECT_EQ(Completed("pack validate x --lev"), "--level ");
  EXPECT_EQ(Completed("pack validate x --level ''"), "quick full deep ");
  EXPECT_EQ(Completed("pack completions ''"), "bash zsh fish ");
}

TEST(Generated, DocsAreUpToDate) {
  std::ifstream in("docs/cli.md");
  ASSERT_TRUE(in.good()) << "docs/cli.md is not among the data of this test";
  std::stringstream text;
  text << in.rdbuf();
  const std::string doc = text.str();
  const size_t mark = doc.find(kReferenceMark);
  ASSERT_NE(mark, std::string::npos) << "docs/cli.md has lost its mark";
  EXPECT_TRUE(doc.substr(mark) == MarkdownReference()) << "run cli/update_docs.sh";
}

}  // namespace
}  // namespace shardpack::cli
