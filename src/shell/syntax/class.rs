//! Classes of bytes, by which runs of text are skipped.

/// Ends or interrupts a word outside quotes.
pub(super) const WORD: u16 = 1;
/// Interrupts text in double quotes.
pub(super) const DOUBLE: u16 = 1 << 1;
/// Interrupts the body of a here-document.
pub(super) const BODY: u16 = 1 << 2;
/// Interrupts the operand of `${name-…}`.
pub(super) const BRACED: u16 = 1 << 3;
/// Interrupts the pattern of `${name/…}`.
pub(super) const PATTERN: u16 = 1 << 4;
/// Interrupts the numbers of `${name:…}`.
pub(super) const SLICE: u16 = 1 << 5;
/// Interrupts an arithmetic expression or an index.
pub(super) const ARITHMETIC: u16 = 1 << 6;
/// Stands in a name.
pub(super) const NAME: u16 = 1 << 7;
/// Separates tokens.
pub(super) const BREAK: u16 = 1 << 8;
/// Stands in a reserved word.
pub(super) const KEYWORD: u16 = 1 << 9;
/// May be skipped between tokens.
pub(super) const BLANK: u16 = 1 << 10;

/// The classes of every byte.
pub(super) const CLASSES: [u16; 256] = classes();

const fn classes() -> [u16; 256] {
    let mut table = [0; 256];
    table = mark(table, b"\0\t\n\r \"$&'();<>\\`|", WORD);
    table = mark(table, b"\0\"$\\`", DOUBLE);
    table = mark(table, b"\0\n$\\`", BODY);
    table = mark(table, b"\0\"$'\\`<>}", BRACED);
    table = mark(table, b"\0\"$'\\`<>}/", PATTERN);
    table = mark(table, b"\0\"$'\\`}:?()", SLICE);
    table = mark(table, b"\0\"$'\\`()[]", ARITHMETIC);
    table = mark(table, b"\t\n &();<>|", BREAK);
    table = mark(table, b"abcdefghijklmnopqrstuvwxyz", NAME | KEYWORD);
    table = mark(table, b"{}[]!", KEYWORD);
    table = mark(table, b"\0\t\r #\\", BLANK);
    mark(table, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", NAME)
}

const fn mark(mut table: [u16; 256], bytes: &[u8], class: u16) -> [u16; 256] {
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] |= class;
        at += 1;
    }
    table
}

/// Whether a byte belongs to a class.
#[inline]
pub(super) const fn is(byte: u8, class: u16) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Whether a name may begin with it.
pub(super) const fn is_name_start(byte: u8) -> bool {
    is(byte, NAME) && !byte.is_ascii_digit()
}
