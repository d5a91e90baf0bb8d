"""Reads shardpack.h and writes C programs about it.

usage: calls.py HEADER functions    the names of all functions, one a line
       calls.py HEADER layout       a program that prints the size of every struct, the place of every member, and the
                                    values of enumerations
       calls.py HEADER stub         a library whose functions do nothing, for tools that compare interfaces
       calls.py HEADER null         a program that calls every function with zeros, and expects INVALID of those that fail
"""

import re
import sys

# An error that is NULL is none.
SUCCEED = {"shardpack_error_code"}


def declarations(text):
  """The header without comments and lines of the preprocessor."""
  return re.sub(r"^#.*$", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), flags=re.MULTILINE)


def functions(text):
  """(return type, name, parameter types) of every function."""
  for declaration in re.findall(r"SHARDPACK_API\s+([^;]*);", text):
    declaration = " ".join(declaration.split())
    kind, name, parameters = re.fullmatch(r"(.*?)(shardpack_\w+)\((.*)\)", declaration).groups()
    types = []
    for parameter in parameters.split(","):
      if parameter.strip() != "void":
        types.append(re.fullmatch(r"\s*(.*?)\w+\s*", parameter).group(1).strip())
    yield kind.strip(), name, types


def structs(text):
  """(name, members) of every struct that is not opaque."""
  for name, body, again in re.findall(r"typedef struct (\w+) \{(.*?)\} (\w+);", text, re.DOTALL):
    assert name == again, name
    members = []
    for line in body.split(";"):
      names = line.split(",")
      for part in names:
        found = re.search(r"(\w+)\s*(\[\w+\])?\s*$", part)
        if found:
          members.append(found.group(1))
    yield name, members


def enumerators(text):
  for body in re.findall(r"\benum \{(.*?)\}", text, re.DOTALL):
    yield from re.findall(r"\b(SHARDPACK_\w+)", body)


def layout_program(text):
  lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "shardpack.h"', "int main(void) {"]
  for name, members in structs(text):
    lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
    for member in members:
      lines.append(f'  printf("  {member} %zu %zu\\n", offsetof({name}, {member}), sizeof((({name}*)0)->{member}));')
  for name in enumerators(text):
    lines.append(f'  printf("{name} = %d\\n", (int){name});')
  return lines + ["  return 0;", "}"]


def stub_library(text):
  lines = ['#include "shardpack.h"']
  for kind, name, types in functions(text):
    parameters = ", ".join(f"{of} a{n}" for n, of in enumerate(types)) or "void"
    lines.append(f"{kind} {name}({parameters}) {{ {'' if kind == 'void' else 'return 0;'} }}")
  return lines


def null_program(text):
  lines = ["#include <stdio.h>", '#include "shardpack.h"', "int main(void) {", "  int failed = 0;"]
  for kind, name, types in functions(text):
    call = f"{name}({', '.join(f'({of})0' for of in types)})"
    if kind == "shardpack_code" and name not in SUCCEED:
      lines.append(f'  if ({call} != SHARDPACK_INVALID) {{ printf("{name} is not INVALID\\n"); failed = 1; }}')
    else:
      lines.append(f"  (void){call};" if kind != "void" else f"  {call};")
  return lines + ["  return failed;", "}"]


def main():
  with open(sys.argv[1], encoding="utf-8") as file:
    text = declarations(file.read())
  if sys.argv[2] == "functions":
    print("\n".join(sorted(name for _, name, _ in functions(text))))
  else:
    programs = {"layout": layout_program, "null": null_program, "stub": stub_library}
    print("\n".join(programs[sys.argv[2]](text)))


main()
