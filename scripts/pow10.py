#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the table of powers of ten that base/num.c needs, as a C header, to standard output.

Entry k holds the first 128 bits of 10**k, rounded up, for every k that a double can need.
"""
FIRST, LAST = -292, 324


def top_128_bits(k):
    if k >= 0:
        value = 10**k
        shift = value.bit_length() - 128
        return value << -shift if shift <= 0 else -(-value >> shift)
    divisor = 10**-k
    shift = divisor.bit_length() + 127
    # 2**shift / divisor lies in (2**127, 2**128]: divisor is no power of two
    return -(-(1 << shift) // divisor)


print("/* Made by scripts/pow10.py. */")
print(f"enum {{ POW10_FIRST = {FIRST}, POW10_LAST = {LAST} }};")
print("static const struct { uint64_t high, low; } pow10_table[] = {")
for k in range(FIRST, LAST + 1):
    bits = top_128_bits(k)
    assert bits.bit_length() == 128, k
    print(f"    {{ 0x{bits >> 64:016x}, 0x{bits & (2**64 - 1):016x} }},")
print("};")
