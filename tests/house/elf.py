# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads ELF files, 64-bit little-endian: functions that are never reached from a program's main, and how a program was
hardened. elf(5); the flags of DT_FLAGS_1 and the property note are in the System V ABI's GNU and x86-64 supplements."""
import bisect
import collections
import struct

SHT_SYMTAB, SHT_RELA = 2, 4
SHF_ALLOC, SHF_EXECINSTR = 2, 4
STB_LOCAL = 0
STT_FUNC = 2
ET_DYN, EM_X86_64 = 3, 62
PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474e551, 0x6474e552
PF_X = 1
DT_FLAGS, DT_FLAGS_1 = 30, 0x6ffffffb
DF_BIND_NOW, DF_1_NOW = 8, 1
NT_GNU_PROPERTY_TYPE_0, GNU_PROPERTY_X86_FEATURE_1_AND = 5, 0xc0000002
IBT, SHSTK = 1, 2
Section = collections.namedtuple("Section", "name type flags address offset size link info alignment entry_size")
Symbol = collections.namedtuple("Symbol", "name info other section value size")


def text_at(strings, offset):
    return strings[offset:strings.index(b"\0", offset)].decode()


def entries(data, section, form):
    return struct.iter_unpack(form, data[section.offset:section.offset + section.size])


class File:
    """The header, and the sections by name."""

    def __init__(self, path):
        self.path = path
        self.data = path.read_bytes()
        if self.data[:6] != b"\x7fELF\2\1":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        self.type, self.machine = struct.unpack_from("<HH", self.data, 16)
        table, = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        self.sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", self.data, table + i * size)) for i in range(count)]
        self.section_names = self.contents(self.sections[names])

    def contents(self, section):
        return self.data[section.offset:section.offset + section.size]

    def named(self, name):
        """The contents of the section, or nothing."""
        return next((self.contents(section) for section in self.sections if text_at(self.section_names, section.name) == name), b"")

    def control_flow(self):
        """IBT and SHSTK, as far as all of the file supports them: the notes are 8 bytes, a name and aligned properties."""
        notes = self.named(".note.gnu.property")
        while notes:
            name_size, size, kind = struct.unpack_from("<III", notes)
            properties = notes[12 + name_size:12 + name_size + size]
            while kind == NT_GNU_PROPERTY_TYPE_0 and properties:
                property_kind, property_size = struct.unpack_from("<II", properties)
                if property_kind == GNU_PROPERTY_X86_FEATURE_1_AND:
                    return struct.unpack_from("<I", properties, 8)[0]
                properties = properties[8 + (property_size + 7) // 8 * 8:]
            notes = notes[12 + name_size + (size + 7) // 8 * 8:]
        return 0


class Program(File):
    """A linked program or module: what its header and its dynamic section say."""

    def __init__(self, path):
        super().__init__(path)
        table, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        segments = [struct.unpack_from("<IIQQQQ", self.data, table + i * size) for i in range(count)]
        self.segments = {kind: flags for kind, flags, *_ in segments}
        self.dynamic = {}
        for kind, _, offset, _, _, file_size in segments:
            if kind == PT_DYNAMIC:
                self.dynamic = dict(struct.iter_unpack("<QQ", self.data[offset:offset + file_size]))
        strings = self.named(".dynstr")
        symbols = [Symbol(text_at(strings, name), *rest) for name, *rest in struct.iter_unpack("<IBBHQQ", self.named(".dynsym"))]
        self.imports = {symbol.name for symbol in symbols if not symbol.section}

    def is_bound_at_start(self):
        return bool(self.dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or self.dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW)

    def has_fortified_calls(self):
        return any(name.startswith("__") and name.endswith("_chk") for name in self.imports)


class Object(File):
    """An object file: the global symbols it defines, and which global symbols each of its functions refers to."""

    def __init__(self, path):
        super().__init__(path)
        data, sections, texts, section_names = self.data, self.sections, self.contents, self.section_names
        table = next(section for section in sections if section.type == SHT_SYMTAB)
        strings = texts(sections[table.link])
        symbols = [Symbol(text_at(strings, name), *rest) for name, *rest in entries(data, table, "<IBBHQQ")]
        is_global = [symbol.info >> 4 != STB_LOCAL for symbol in symbols]
        defined = [symbol for symbol, is_it in zip(symbols, is_global) if is_it and symbol.section]
        self.functions = {symbol.name for symbol in defined if symbol.info & 15 == STT_FUNC}
        self.names = {symbol.name for symbol in defined}
        # What a local function or data refers to counts for the whole file: how local ones refer to each other
        # cannot be seen, as the assembler has resolved it.
        self.references = collections.defaultdict(set)
        for relocations in sections:
            if relocations.type != SHT_RELA:
                continue
            target = sections[relocations.info]
            if not target.flags & SHF_ALLOC or text_at(section_names, target.name) == ".eh_frame":
                continue
            spans = sorted((symbol.value, symbol.value + symbol.size, symbol.name) for symbol in defined
                           if symbol.section == relocations.info and symbol.info & 15 == STT_FUNC)
            starts = [span[0] for span in spans]
            for offset, info, _ in entries(data, relocations, "<QQq"):
                number = info >> 32
                if not is_global[number]:
                    continue
                at = bisect.bisect_right(starts, offset) - 1
                user = spans[at][2] if at >= 0 and offset < spans[at][1] else None
                self.references[user].add(symbols[number].name)


def unreached(objects, roots):
    """{function: Object} of global functions that no chain of references leads to from the roots."""
    definers = collections.defaultdict(list)
    for it in objects:
        for name in it.names:
            definers[name].append(it)
    seen, seen_files, waiting = set(), set(), list(roots)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for it in definers[name]:
            waiting.extend(it.references[name])
            if it.path not in seen_files:
                seen_files.add(it.path)
                waiting.extend(it.references[None])
    return {name: it for it in objects for name in it.functions if name not in seen}
