# SPDX-License-Identifier: Apache-2.0
"""Names and texts of a model in the source code of other languages.

A model may come from anyone: nothing of it gets into code but through this module.
"""

import re
import sys
from collections.abc import Collection, Iterable, Sequence

# What Python, C and C++, Java and Kotlin reserve.
_WORDS = """
and as assert async await break case class continue def del elif else except false
finally for from global if import in is lambda match none nonlocal not or pass raise
return self true try type while with yield

alignas alignof and_eq asm auto bitand bitor bool catch char char16_t char32_t
char8_t co_await co_return co_yield compl complex concept const const_cast consteval
constexpr constinit decltype default delete do double dynamic_cast enum explicit
export extern final float friend goto i386 imaginary inline int linux long mutable
namespace new noexcept not_eq nullptr operator or_eq override private protected
public register reinterpret_cast requires restrict short signed sizeof static
static_assert static_cast struct switch template this thread_local throw typedef
typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile
wchar_t xor xor_eq

abstract actual annotation boolean byte by companion crossinline data dynamic expect
extends external field fun get implements infix init inner instanceof interface internal
it lateinit native noinline null object open out package param permits property receiver
record reified sealed set strictfp super suspend synchronized tailrec throws transient
val value var vararg when where
"""
# What the generated code itself calls something, or uses where names of a model are.
_USED = """
argc argv array bytes best close equal example facts file folder fprintf i image_size
index info inputs load main model models neon8 net np numpy options outputs path printf
result run same sample session shape shapes size size_t snprintf static_cast status std
stderr stdin stdout stored threads usual
"""
# Whose functions, such as sem_open, would be those of other libraries.
_PREFIXES = "lib mq n8 neon8 posix pthread sem shm std"
_EXPORTED = "close labels mean model model_size open open_bytes resize run scale std"
# What files in packages and targets of CMake in any project are called.
_FILES = """
all build clean edit_cache example help include install lib model numpy package
package_source rebuild_cache sample src tests
"""
PREFIXES = frozenset(_PREFIXES.split())
LANGUAGES = frozenset(_WORDS.split())
WORDS = LANGUAGES | frozenset(_USED.split())
PACKAGES = LANGUAGES | frozenset(_FILES.split()) | sys.stdlib_module_names

LONGEST = 40
"""Letters of an identifier."""
LONGEST_SHOWN = 60
"""Letters of a name in a comment."""


def identifiers(
    names: Sequence[str], otherwise: str, taken: Collection[str] = ()
) -> tuple[str, ...]:
    """For each name one in lower case that no language reserves, no two alike.

    otherwise: for names of which nothing is left.  taken: others that are used.
    """
    found: list[str] = []
    for name in names:
        plain = _identifier(name, otherwise, WORDS)
        tried, number = plain, 2
        while tried in found or tried in taken:
            tried, number = f"{plain}_{number}", number + 1
        found.append(tried)
    return tuple(found)


def package_name(name: str) -> str:
    """What a package is called, and what stands before all that it exports."""
    return _identifier(name, "model", PACKAGES)


def _identifier(name: str, otherwise: str, reserved: Collection[str]) -> str:
    """A name in camel case has its words apart."""
    head = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name[: 4 * LONGEST])
    plain = re.sub(r"[^0-9A-Za-z]+", "_", head).strip("_").lower()
    plain = plain[:LONGEST].rstrip("_")
    if not plain:
        return otherwise
    foreign = plain in reserved or plain.partition("_")[0] in PREFIXES
    return f"{otherwise}_{plain}" if foreign or plain[0].isdigit() else plain


def exported(package: str) -> tuple[str, ...]:
    """What the wrapper in C exports, besides the name of the package."""
    return (package, *(f"{package}_{suffix}" for suffix in _EXPORTED.split()))


def camel(name: str) -> str:
    """An identifier as that of a class."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def shown(name: str) -> str:
    """A name for comments of any language, which it cannot end, nor go on with a line.

    Letters, digits and a few signs stay; two hyphens would end a comment of XML.
    """
    head = name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 3]}..."
    return re.sub(r"--+", "-", re.sub(r"[^0-9A-Za-z_.,:;/()=+ -]", "_", head)).strip()


def c_text(text: str) -> str:
    """A literal of C and C++ with the bytes of a text in UTF-8."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    if letter in '"\\?':  # ??/ would be a backslash
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "replace"))


def python_text(text: str) -> str:
    """A literal of Python, with the quotes that need fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_python(letter, quote) for letter in text) + quote


def _python(letter: str, quote: str) -> str:
    if letter in (quote, "\\"):
        return f"\\{letter}"
    return letter if letter.isprintable() else ascii(letter)[1:-1]


def java_text(text: str) -> str:
    """A literal of Java, in ASCII."""
    data = text.encode("utf-16-be", "replace")
    units = (high << 8 | low for high, low in zip(data[::2], data[1::2], strict=True))
    return f'"{"".join(map(_java_unit, units))}"'


def _java_unit(unit: int) -> str:
    if unit > 126:
        return f"\\u{unit:04x}"
    # Not so of these: Java reads such escapes before it looks for the ends of literals.
    return f"\\{unit:03o}" if unit < 32 or chr(unit) in '"\\' else chr(unit)


_OF_BYTE = [
    f"\\{byte:03o}" if not 32 <= byte < 127 or chr(byte) in '"\\?' else chr(byte)
    for byte in range(256)
]
ROW = 24
"""Bytes in a line, of which most take four letters."""


def c_bytes(data: bytes) -> str:
    """Literals of C, one below the other, with these bytes.

    Compilers read them many times faster than numbers between commas.
    """
    rows = (data[start : start + ROW] for start in range(0, max(len(data), 1), ROW))
    return "\n".join(f'    "{"".join(map(_OF_BYTE.__getitem__, row))}"' for row in rows)


def c_float(value: float) -> str:
    """A literal of C with exactly this float32."""
    text = f"{value:.9g}"
    return f"{text}f" if re.search(r"[.e]", text) else f"{text}.0f"


def broken(head: str, parts: Iterable[str], *, most: int = 100) -> str:
    """`head` with its arguments, on as many lines as they need."""
    lines, indent = [head], " " * len(head)
    all_parts = list(parts)
    for number, part in enumerate(all_parts):
        text = part + ("," if number < len(all_parts) - 1 else "")
        first = lines[-1] in (head, indent)
        if not first and len(lines[-1]) + 1 + len(text) > most - 2:  # ")" and ";"
            lines.append(indent)
            first = True
        lines[-1] += text if first else f" {text}"
    return "\n".join(lines)
