"""Writes shardpack/_c.py: the C interface of api/shardpack.h for ctypes.

usage: python3 python/update_c.py [HEADER]     prints it; the file of the tree is written with
         python3 python/update_c.py api/shardpack.h > python/shardpack/_c.py

The compiler expands the header, pycparser (Debian's python3-pycparser) reads it. Opaque handles and pointers to numbers
become void pointers, so that arrays, addresses and byref() are all accepted; pointers to structs keep their type.
"""

import os
import re
import subprocess
import sys

from pycparser import c_ast, c_parser

PREFIX = "shardpack_"
# Headers with the names of C's types and nothing else.
FAKE_HEADERS = "/usr/share/python3-pycparser/fake_libc_include"
NUMBERS = {
    "char": "c_char", "int": "c_int", "float": "c_float", "double": "c_double", "size_t": "c_size_t",
    **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "uintptr_t": "c_size_t", "intptr_t": "c_ssize_t",
}
LIMITS = {"UINT64_MAX": 2**64 - 1}
# A text with a length need not end in a zero, so it is not a c_char_p.
COUNTED_TEXT = {PREFIX + "text"}
HEAD = '"""The C interface for ctypes. Made of api/shardpack.h by update_c.py: not to be edited."""'


def expanded(header, *flags):
  return subprocess.run(["cc", "-E", "-nostdinc", "-U__GNUC__", "-I", FAKE_HEADERS, *flags, header], check=True, stdout=subprocess.PIPE,
                        text=True).stdout


class Interface:
  """What a header declares."""

  def __init__(self, header):
    self.constants = {}  # name -> number or text
    self.aliases = {}    # typedef -> the number's type
    self.opaque = set()
    self.structs = {}    # name -> [(member, type)]
    self.functions = {}  # name -> (result, [argument])
    tree = c_parser.CParser().parse(expanded(header, "-P"), header)
    for node in tree.ext:
      self.declare(node)
    self.add_macros(expanded(header, "-dM"))

  def add_macros(self, text):
    for name, value in sorted(re.findall(rf"^#define ({PREFIX.upper()}\w+) +(.+)$", text, re.MULTILINE)):
      if re.fullmatch(r'"[^"\\]*"', value):
        self.constants[name] = value[1:-1]
      elif value in LIMITS:
        self.constants[name] = LIMITS[value]
      elif match := re.fullmatch(r"\(?\(?(?:\w+_t\)\s*)?(-?(?:0[xX][0-9a-fA-F]+|\d+))[uUlL]*\)?", value):
        self.constants[name] = int(match[1], 0)

  def declare(self, node):
    type_node = node.type
    if isinstance(type_node, c_ast.Enum):
      self.add_enum(type_node)
    if isinstance(node, c_ast.Typedef):
      self.add_typedef(node)
    elif isinstance(node, c_ast.Decl) and isinstance(type_node, c_ast.FuncDecl):
      arguments = [] if type_node.args is None else [self.type_of(one.type) for one in type_node.args.params]
      self.functions[node.name] = (self.type_of(type_node.type), [one for one in arguments if one != "None"])
    elif isinstance(node, c_ast.Decl) and isinstance(type_node, c_ast.Struct):
      self.add_struct(type_node.name, type_node)

  def add_enum(self, enum):
    value = -1
    for one in enum.values.enumerators if enum.values else ():
      value = value + 1 if one.value is None else self.number(one.value)
      self.constants[one.name] = value

  def number(self, node):
    if isinstance(node, c_ast.Constant):
      return int(node.value.rstrip("uUlL"), 0)
    if isinstance(node, c_ast.UnaryOp) and node.op == "-":
      return -self.number(node.expr)
    if isinstance(node, c_ast.BinaryOp) and node.op == "<<":
      return self.number(node.left) << self.number(node.right)
    if isinstance(node, c_ast.ID):
      return self.constants[node.name]
    raise ValueError(f"no constant that is understood here: {node}")

  def add_typedef(self, node):
    of = node.type
    if not node.name.startswith(PREFIX):
      return
    if isinstance(of, c_ast.TypeDecl) and isinstance(of.type, c_ast.Struct):
      self.add_struct(node.name, of.type)
    elif isinstance(of, c_ast.TypeDecl) and isinstance(of.type, c_ast.Enum):
      self.add_enum(of.type)
      self.aliases[node.name] = "c_int"
    else:
      self.aliases[node.name] = self.type_of(of)

  def add_struct(self, name, struct):
    if struct.decls is None:
      if name not in self.structs:
        self.opaque.add(name)
      return
    self.opaque.discard(name)
    self.structs[name] = [(member.name, "c_void_p" if name in COUNTED_TEXT and member.name == "data" else self.type_of(member.type))
                          for member in struct.decls]

  def type_of(self, node):
    if isinstance(node, c_ast.PtrDecl):
      return self.pointer_to(node.type)
    if isinstance(node, c_ast.ArrayDecl):
      return f"{self.type_of(node.type)} * {self.number(node.dim)}"
    name = self.name_of(node)
    if name == "void":
      return "None"
    return NUMBERS.get(name) or self.aliases.get(name) or name

  def name_of(self, node):
    inner = node.type
    return " ".join(inner.names) if isinstance(inner, c_ast.IdentifierType) else inner.name

  def pointer_to(self, node):
    if isinstance(node, c_ast.PtrDecl):
      return f"POINTER({self.pointer_to(node.type)})"
    if isinstance(node, c_ast.FuncDecl):
      raise ValueError("a pointer to a function: the interface has no callbacks")
    name = self.name_of(node)
    if name == "char":
      return "c_char_p"
    return f"POINTER({name})" if name in self.structs else "c_void_p"


def text_of(interface):
  python = lambda text: re.sub(rf"\b{PREFIX}", "", text)
  lines = [f"{name.removeprefix(PREFIX.upper())} = {value!r}" for name, value in interface.constants.items()]
  for name, members in interface.structs.items():
    lines += ["", "", f"class {python(name)}(Structure):", "  _fields_ = ["]
    lines += [f'      ("{member}", {python(kind)}),' for member, kind in members]
    lines += ["  ]"]
  lines += ["", "", "# name: (result, arguments)", "FUNCTIONS = {"]
  for name, (result, arguments) in interface.functions.items():
    lines.append(f'    "{python(name)}": ({python(result)}, [{python(", ".join(arguments))}]),')
  lines += ["}", ""]
  body = "\n".join(lines)
  used = sorted(set(re.findall(r"\b(?:c_\w+|POINTER|Structure)\b", body)), key=str.lower)
  return "\n".join([HEAD, "", f"from ctypes import {', '.join(used)}", "", body])


def main():
  header = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "api", "shardpack.h")
  sys.stdout.write(text_of(Interface(header)))


if __name__ == "__main__":
  main()
