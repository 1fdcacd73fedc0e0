//! The layers of disguise a view can take off, and sets of them.

/// One way of writing text so that it reads the same and matches differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Layer {
    /// Compatibility forms: full-width letters, ligatures, mathematical alphabets.
    Nfkc,
    /// Letter case of non-ASCII letters; the case of ASCII letters is kept.
    Case,
    /// Zero-width and other default-ignorable characters.
    Invisible,
    /// Bidirectional controls.
    Bidi,
    /// Unicode tag characters, which spell ASCII invisibly.
    Tags,
    /// Bytes hidden in runs of variation selectors.
    VariationSelectors,
    /// Letters of other scripts that look like ASCII letters or digits.
    Confusables,
    /// Diacritics put on Latin letters, or stacked on any.
    CombiningMarks,
    /// Unicode spaces and line separators.
    Whitespace,
    /// Typographic dashes, quotes and look-alike punctuation.
    Punctuation,
    /// Decimal digits of other scripts.
    Digits,
    /// Letters set apart: `i g n o r e`.
    Spaced,
    /// Base64, standard or URL-safe, of UTF-8 or UTF-16LE text.
    Base64,
    /// Hexadecimal bytes.
    Hex,
    /// Percent encoding, and `+` for a blank in forms and queries.
    Percent,
    /// HTML character references.
    HtmlEntities,
    /// Backslash escapes of JSON, JavaScript, C and Python.
    Escapes,
    /// The rotation of letters by thirteen.
    Rot13,
    /// Digits and signs in place of letters.
    Leet,
    /// Text written backwards.
    Reversed,
    /// Base32 of text.
    Base32,
    /// Morse code.
    Morse,
    /// Control sequences of terminals.
    Terminal,
    /// Words set apart by more than a blank: white space, line leaders, markup, joining signs.
    Layout,
    /// Words in pig latin.
    PigLatin,
    /// Quoted-printable, as in mail.
    QuotedPrintable,
    /// Strings that code puts together from pieces.
    Joined,
    /// Numbers in place of letters: their codes, or their places in the alphabet.
    Numbers,
    /// Words with something amid them that shows as nothing.
    Broken,
    /// Ciphers that put one sign for another: letters shifted by any number, the alphabet backwards, ROT47.
    Cipher,
    /// Words in place of letters, as in `India Golf November`, and Braille.
    Spelled,
    /// What gzip or zlib packed.
    Packed,
}

impl Layer {
    /// Every layer, in bit order.
    pub const ALL: [Self; 32] = [
        Self::Nfkc,
        Self::Case,
        Self::Invisible,
        Self::Bidi,
        Self::Tags,
        Self::VariationSelectors,
        Self::Confusables,
        Self::CombiningMarks,
        Self::Whitespace,
        Self::Punctuation,
        Self::Digits,
        Self::Spaced,
        Self::Base64,
        Self::Hex,
        Self::Percent,
        Self::HtmlEntities,
        Self::Escapes,
        Self::Rot13,
        Self::Leet,
        Self::Reversed,
        Self::Base32,
        Self::Morse,
        Self::Terminal,
        Self::Layout,
        Self::PigLatin,
        Self::QuotedPrintable,
        Self::Joined,
        Self::Numbers,
        Self::Broken,
        Self::Cipher,
        Self::Spelled,
        Self::Packed,
    ];

    /// The stable name that findings report as an evasion.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nfkc => "nfkc",
            Self::Case => "case",
            Self::Invisible => "zero_width",
            Self::Bidi => "bidi",
            Self::Tags => "tags",
            Self::VariationSelectors => "variation_selectors",
            Self::Confusables => "confusables",
            Self::CombiningMarks => "combining_marks",
            Self::Whitespace => "whitespace",
            Self::Punctuation => "punctuation",
            Self::Digits => "digits",
            Self::Spaced => "spaced",
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Percent => "percent",
            Self::HtmlEntities => "html_entities",
            Self::Escapes => "escapes",
            Self::Rot13 => "rot13",
            Self::Leet => "leet",
            Self::Reversed => "reversed",
            Self::Base32 => "base32",
            Self::Morse => "morse",
            Self::Terminal => "terminal",
            Self::Layout => "layout",
            Self::PigLatin => "pig_latin",
            Self::QuotedPrintable => "quoted_printable",
            Self::Joined => "joined",
            Self::Numbers => "numbers",
            Self::Broken => "broken",
            Self::Cipher => "cipher",
            Self::Spelled => "spelled",
            Self::Packed => "packed",
        }
    }
}

/// A set of [`Layer`]s.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Layers(u32);

impl Layers {
    /// No layer.
    pub const NONE: Self = Self(0);

    /// The set of this one layer.
    pub const fn of(layer: Layer) -> Self {
        Self(1 << layer as u32)
    }

    /// Whether `layer` is in the set.
    pub const fn contains(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u32) != 0
    }

    /// Whether the two sets share a layer.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Adds one layer.
    pub fn insert(&mut self, layer: Layer) {
        *self = self.union(Self::of(layer));
    }

    /// The layers of either set.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether no layer is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The layers, in the order of [`Layer::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Layer> {
        Layer::ALL.into_iter().filter(move |&layer| self.contains(layer))
    }
}

impl From<Layer> for Layers {
    fn from(layer: Layer) -> Self {
        Self::of(layer)
    }
}

impl std::fmt::Debug for Layers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
