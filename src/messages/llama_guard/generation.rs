//! Generations of Llama Guard: their categories, and the tokens that frame a prompt.
//!
//! The same code means different things in different generations, so every table belongs to one. Sources: the model
//! cards of Llama Guard 1 to 4 (meta-llama/PurpleLlama).

use serde::{Deserialize, Serialize};

use crate::decision::Severity;
use crate::decision::Severity::{Critical, High, Medium};

/// A generation of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// The first one, with categories O1 to O6.
    One,
    /// Llama Guard 2: S1 to S11.
    Two,
    /// Llama Guard 3: S1 to S14; the one of a billion parameters ends at S13.
    Three {
        /// Whether it is the small one.
        is_small: bool,
    },
    /// Llama Guard 4: S1 to S14.
    Four,
}

/// Which generation the settings mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub enum GenerationSetting {
    /// The one that the name of the model tells.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The first.
    #[serde(rename = "1")]
    One,
    /// The second.
    #[serde(rename = "2")]
    Two,
    /// The third.
    #[serde(rename = "3")]
    Three,
    /// The fourth.
    #[serde(rename = "4")]
    Four,
}

/// A generation as settings have it: a word, or a number without quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Word(String),
}

impl TryFrom<Written> for GenerationSetting {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let word = match written {
            Written::Number(number) => number.to_string(),
            Written::Word(word) => word,
        };
        Ok(match word.as_str() {
            "auto" => Self::Auto,
            "1" => Self::One,
            "2" => Self::Two,
            "3" => Self::Three,
            "4" => Self::Four,
            other => return Err(format!("unknown generation `{other}`; valid: auto, 1, 2, 3, 4")),
        })
    }
}

/// One category of a generation.
#[derive(Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The code in answers: `S1`, or `O1` in the first generation.
    pub code: &'static str,
    /// The name that findings give.
    pub name: &'static str,
    /// The name in the prompt.
    pub prompt_name: &'static str,
    /// Our category, below `content_safety`.
    pub leaf: &'static str,
    /// How bad it is.
    pub severity: Severity,
}

const fn hazard(
    code: &'static str,
    (name, prompt_name): (&'static str, &'static str),
    leaf: &'static str,
    severity: Severity,
) -> Hazard {
    Hazard { code, name, prompt_name, leaf, severity }
}

const fn same(name: &'static str) -> (&'static str, &'static str) {
    (name, name)
}

const FIRST: &[Hazard] = &[
    hazard("O1", same("Violence and Hate"), "violence_and_hate", High),
    hazard("O2", same("Sexual Content"), "sexual_content", Medium),
    hazard("O3", same("Criminal Planning"), "criminal_planning", High),
    hazard("O4", same("Guns and Illegal Weapons"), "weapons", High),
    hazard("O5", same("Regulated or Controlled Substances"), "substances", Medium),
    hazard("O6", same("Self-Harm"), "self_harm", High),
];

const SECOND: &[Hazard] = &[
    hazard("S1", same("Violent Crimes"), "violent_crimes", High),
    hazard("S2", same("Non-Violent Crimes"), "non_violent_crimes", High),
    hazard("S3", ("Sex-Related Crimes", "Sex Crimes"), "sex_crimes", High),
    hazard("S4", ("Child Sexual Exploitation", "Child Exploitation"), "child_exploitation", Critical),
    hazard("S5", same("Specialized Advice"), "specialized_advice", Medium),
    hazard("S6", same("Privacy"), "privacy", High),
    hazard("S7", same("Intellectual Property"), "intellectual_property", Medium),
    hazard("S8", same("Indiscriminate Weapons"), "indiscriminate_weapons", Critical),
    hazard("S9", same("Hate"), "hate", High),
    hazard("S10", ("Suicide & Self-Harm", "Self-Harm"), "self_harm", High),
    hazard("S11", same("Sexual Content"), "sexual_content", Medium),
];

const THIRD: &[Hazard] = &[
    hazard("S1", same("Violent Crimes"), "violent_crimes", High),
    hazard("S2", same("Non-Violent Crimes"), "non_violent_crimes", High),
    hazard("S3", ("Sex-Related Crimes", "Sex Crimes"), "sex_crimes", High),
    hazard("S4", ("Child Sexual Exploitation", "Child Exploitation"), "child_exploitation", Critical),
    hazard("S5", same("Defamation"), "defamation", Medium),
    hazard("S6", same("Specialized Advice"), "specialized_advice", Medium),
    hazard("S7", same("Privacy"), "privacy", High),
    hazard("S8", same("Intellectual Property"), "intellectual_property", Medium),
    hazard("S9", same("Indiscriminate Weapons"), "indiscriminate_weapons", Critical),
    hazard("S10", same("Hate"), "hate", High),
    hazard("S11", ("Suicide & Self-Harm", "Self-Harm"), "self_harm", High),
    hazard("S12", same("Sexual Content"), "sexual_content", Medium),
    hazard("S13", same("Elections"), "elections", Medium),
    hazard("S14", same("Code Interpreter Abuse"), "code_interpreter_abuse", High),
];

impl GenerationSetting {
    /// The generation for a model of this name; `None` when the name does not tell.
    pub fn resolve(self, model: &str) -> Option<Generation> {
        let is_small = model.to_ascii_lowercase().contains("1b");
        match self {
            Self::Auto => of_model(model),
            Self::One => Some(Generation::One),
            Self::Two => Some(Generation::Two),
            Self::Three => Some(Generation::Three { is_small }),
            Self::Four => Some(Generation::Four),
        }
    }
}

/// The generation that a name such as `llama-guard3:1b` or `meta-llama/Llama-Guard-4-12B` tells.
fn of_model(model: &str) -> Option<Generation> {
    let name = model.to_ascii_lowercase();
    let after = &name[name.find("guard")? + "guard".len()..];
    let after = after.trim_start_matches(['-', '_', ' ']);
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = after.split_at(digits);
    // `LlamaGuard-7b` tells a size.
    let is_size = rest.starts_with('b');
    match number {
        // `guardian` is another model.
        "" if rest.starts_with(char::is_alphabetic) => None,
        "" | "1" if !is_size => Some(Generation::One),
        "7" if is_size => Some(Generation::One),
        "2" if !is_size => Some(Generation::Two),
        "3" if !is_size => Some(Generation::Three { is_small: is_small_three(rest) }),
        "4" if !is_size => Some(Generation::Four),
        _ => None,
    }
}

fn is_small_three(rest: &str) -> bool {
    rest.trim_start_matches([':', '-', '_']).starts_with("1b")
}

impl Generation {
    /// Its categories.
    pub fn hazards(self) -> &'static [Hazard] {
        match self {
            Self::One => FIRST,
            Self::Two => SECOND,
            Self::Three { is_small: true } => &THIRD[..13],
            Self::Three { is_small: false } | Self::Four => THIRD,
        }
    }

    /// The category of a code as a model wrote it. The first generation is also known to write `S1` or `01`.
    pub fn hazard(self, code: &str) -> Option<&'static Hazard> {
        let number = code.get(1..)?.trim_start_matches('0');
        let is_code = |hazard: &&Hazard| match self {
            Self::One => &hazard.code[1..] == number,
            _ => code.starts_with('S') && &hazard.code[1..] == number,
        };
        // S14 of a small model is none that it was asked about, and is one all the same.
        let all = if matches!(self, Self::Three { .. }) { THIRD } else { self.hazards() };
        all.iter().find(is_code)
    }

    /// The prompt between the tokens of its generation.
    pub(super) fn framed(self, prompt: &str) -> String {
        match self {
            Self::One => format!("[INST] {prompt} [/INST]"),
            Self::Two | Self::Three { .. } => format!(
                "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{prompt}<|eot_id|>\
                 <|start_header_id|>assistant<|end_header_id|>\n\n"
            ),
            Self::Four => format!(
                "<|begin_of_text|><|header_start|>user<|header_end|>\n\n{prompt}<|eot|>\
                 <|header_start|>assistant<|header_end|>\n\n"
            ),
        }
    }

    /// As reports name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Two => "2",
            Self::Three { .. } => "3",
            Self::Four => "4",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_tell_their_generation() {
        let small = Generation::Three { is_small: true };
        let three = Generation::Three { is_small: false };
        for (model, wanted) in [
            ("llama-guard", Some(Generation::One)),
            ("llama-guard:latest", Some(Generation::One)),
            ("meta-llama/LlamaGuard-7b", Some(Generation::One)),
            ("meta-llama/Meta-Llama-Guard-2-8B", Some(Generation::Two)),
            ("llama-guard3", Some(three)),
            ("llama-guard3:8b", Some(three)),
            ("llama-guard3:1b", Some(small)),
            ("meta-llama/Llama-Guard-3-1B", Some(small)),
            ("meta-llama/Llama-Guard-3-8B-INT8", Some(three)),
            ("meta-llama/Llama-Guard-4-12B", Some(Generation::Four)),
            ("llama-guard-5", None),
            ("llama-guard-33", None),
            ("granite-guardian", None),
            ("shield", None),
        ] {
            assert_eq!(GenerationSetting::Auto.resolve(model), wanted, "{model}");
        }
        assert_eq!(GenerationSetting::Two.resolve("shield"), Some(Generation::Two));
        assert_eq!(GenerationSetting::Three.resolve("my-guard-1b"), Some(small));
    }

    #[test]
    fn a_code_means_what_its_generation_says() {
        let three = Generation::Three { is_small: false };
        for (generation, code, wanted) in [
            (Generation::One, "O1", Some("Violence and Hate")),
            (Generation::One, "S3", Some("Criminal Planning")),
            (Generation::One, "06", Some("Self-Harm")),
            (Generation::One, "S7", None),
            (Generation::Two, "S5", Some("Specialized Advice")),
            (Generation::Two, "S11", Some("Sexual Content")),
            (Generation::Two, "S12", None),
            (three, "S5", Some("Defamation")),
            (three, "S05", Some("Defamation")),
            (three, "S14", Some("Code Interpreter Abuse")),
            (three, "O1", None),
            (three, "S15", None),
            (three, "S0", None),
            (Generation::Three { is_small: true }, "S14", Some("Code Interpreter Abuse")),
            (Generation::Four, "S1", Some("Violent Crimes")),
        ] {
            assert_eq!(generation.hazard(code).map(|hazard| hazard.name), wanted, "{generation:?} {code}");
        }
        assert_eq!(Generation::Three { is_small: true }.hazards().len(), 13);
        for (generation, count) in
            [(Generation::One, 6), (Generation::Two, 11), (three, 14), (Generation::Four, 14)]
        {
            let hazards = generation.hazards();
            assert_eq!(hazards.len(), count);
            let numbers: Vec<usize> =
                hazards.iter().map(|hazard| hazard.code[1..].parse().expect("a number")).collect();
            assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "in order");
        }
    }
}
