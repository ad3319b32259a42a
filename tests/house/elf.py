# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions of compiled object files are never reached from a program's main: elf(5), 64-bit little-endian."""
import bisect
import collections
import struct

SHT_SYMTAB, SHT_RELA = 2, 4
SHF_ALLOC, SHF_EXECINSTR = 2, 4
STB_LOCAL = 0
STT_FUNC = 2
Section = collections.namedtuple("Section", "name type flags address offset size link info alignment entry_size")
Symbol = collections.namedtuple("Symbol", "name info other section value size")


def text_at(strings, offset):
    return strings[offset:strings.index(b"\0", offset)].decode()


def entries(data, section, form):
    return struct.iter_unpack(form, data[section.offset:section.offset + section.size])


class Object:
    """An object file: the global symbols it defines, and which global symbols each of its functions refers to."""

    def __init__(self, path):
        self.path = path
        data = path.read_bytes()
        if data[:6] != b"\x7fELF\2\1":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        table, = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", data, table + i * size)) for i in range(count)]
        texts = lambda section: data[section.offset:section.offset + section.size]
        section_names = texts(sections[names])
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
