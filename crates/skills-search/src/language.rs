//! [`Language`]: recognizes the language of a text, for its stems and stop words.

use rust_stemmers::{Algorithm, Stemmer};

/// The number of words that are compared to recognize a language.
const SAMPLE_WORDS: usize = 60;
/// The length of the longest stop word, in bytes.
const MAX_STOP_WORD_BYTES: usize = 14;
/// The minimum number of stop words by which another language is told apart from English.
const MIN_STOP_WORDS: usize = 2;

/// A language whose words are stemmed. All other languages are treated as English, which changes few of their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English, and every language that is not recognized.
    English,
    /// Dutch.
    Dutch,
    /// French.
    French,
    /// German.
    German,
    /// Italian.
    Italian,
    /// Portuguese.
    Portuguese,
    /// Russian.
    Russian,
    /// Spanish.
    Spanish,
}

/// The number of languages.
pub(crate) const LANGUAGES: usize = 8;

/// Stop words of each language, sorted. The English ones are ignored in every query. The others show the language of a text and
/// are only ignored in queries in this language, because words such as `die` have a meaning in English.
const STOP_WORDS: [(Language, &[&str]); LANGUAGES] = [
    (
        Language::English,
        &[
            "a", "about", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for",
            "from", "get", "have", "help", "how", "i", "in", "into", "is", "it", "its", "me", "my", "need",
            "of", "on", "or", "our", "please", "so", "some", "that", "the", "them", "then", "there", "this",
            "to", "up", "us", "use", "using", "want", "we", "what", "when", "where", "which", "who", "why",
            "will", "with", "would", "you", "your",
        ],
    ),
    (
        Language::Dutch,
        &[
            "aan", "als", "bij", "dat", "de", "die", "dit", "een", "en", "het", "hoe", "ik", "je", "met",
            "mijn", "naar", "niet", "of", "om", "op", "te", "uit", "van", "voor", "wil", "zijn",
        ],
    ),
    (
        Language::French,
        &[
            "au", "aux", "avec", "ce", "comment", "dans", "de", "des", "du", "en", "est", "et", "je", "la",
            "le", "les", "ma", "mes", "mon", "ou", "par", "pas", "pour", "que", "qui", "sur", "un", "une",
            "veux",
        ],
    ),
    (
        Language::German,
        &[
            "als", "am", "auf", "aus", "bei", "das", "dem", "den", "der", "die", "ein", "eine", "einem",
            "einen", "einer", "für", "ich", "im", "ist", "kann", "man", "mein", "meine", "meinen", "mit",
            "nach", "nicht", "oder", "und", "von", "wenn", "wie", "zu", "zum", "zur", "über",
        ],
    ),
    (
        Language::Italian,
        &[
            "che", "come", "con", "da", "dal", "dei", "del", "della", "di", "e", "gli", "i", "il", "in",
            "la", "le", "lo", "mi", "mia", "mio", "nel", "o", "per", "su", "un", "una", "voglio",
        ],
    ),
    (
        Language::Portuguese,
        &[
            "ao", "as", "com", "como", "da", "de", "do", "dos", "e", "em", "eu", "meu", "minha", "na", "no",
            "não", "o", "os", "ou", "para", "por", "que", "quero", "se", "um", "uma",
        ],
    ),
    (
        Language::Russian,
        &[
            "без",
            "в",
            "для",
            "и",
            "из",
            "или",
            "как",
            "когда",
            "мне",
            "мой",
            "на",
            "не",
            "о",
            "от",
            "по",
            "с",
            "что",
            "это",
            "я",
        ],
    ),
    (
        Language::Spanish,
        &[
            "al", "como", "con", "cuando", "cómo", "de", "del", "el", "en", "es", "la", "las", "lo", "los",
            "mi", "mis", "o", "para", "por", "que", "quiero", "se", "su", "un", "una", "y",
        ],
    ),
];

impl Language {
    /// Recognizes the language of a text by its stop words. Short texts without stop words are English.
    pub fn of(text: &str) -> Self {
        let mut counts = [0_usize; LANGUAGES];
        let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
        for word in words.take(SAMPLE_WORDS).filter(|word| word.len() <= MAX_STOP_WORD_BYTES) {
            let word = word.to_lowercase();
            for (count, (_, stop_words)) in counts.iter_mut().zip(&STOP_WORDS) {
                *count += usize::from(stop_words.binary_search(&word.as_str()).is_ok());
            }
        }
        let mut best = Self::English;
        let mut most = counts[0].max(MIN_STOP_WORDS - 1);
        for (count, (language, _)) in counts.into_iter().zip(&STOP_WORDS).skip(1) {
            if count > most {
                best = *language;
                most = count;
            }
        }
        best
    }

    /// Returns true if queries in this language ignore `word`, which is in lower case.
    pub fn ignores(self, word: &str) -> bool {
        let has = |language: Self| STOP_WORDS[language as usize].1.binary_search(&word).is_ok();
        has(Self::English) || has(self)
    }

    /// Returns the stemmer of the language.
    pub(crate) fn stemmer(self) -> Stemmer {
        Stemmer::create(match self {
            Self::English => Algorithm::English,
            Self::Dutch => Algorithm::Dutch,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Italian => Algorithm::Italian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted_and_in_the_order_of_the_languages() {
        for (number, (language, words)) in STOP_WORDS.iter().enumerate() {
            assert!(words.is_sorted(), "{language:?}");
            assert!(words.iter().all(|word| word.len() <= MAX_STOP_WORD_BYTES));
            assert_eq!(*language as usize, number);
        }
    }

    #[test]
    fn languages_are_recognized_by_their_stop_words() {
        for (text, expected) in [
            ("Use this when the user asks for a review.", Language::English),
            ("docker compose", Language::English),
            ("die hard", Language::English),
            ("Erstellt Rechnungen für den Kunden und prüft die Beträge.", Language::German),
            ("Rédige des lettres pour les clients", Language::French),
            ("Prepara las facturas para el cliente", Language::Spanish),
            ("Prepara i documenti per il cliente e gli ordini", Language::Italian),
            ("Prepara os documentos para um cliente", Language::Portuguese),
            ("Maakt een factuur voor de klant", Language::Dutch),
            ("Составляет отчёт для клиента и проверяет суммы", Language::Russian),
        ] {
            assert_eq!(Language::of(text), expected, "{text}");
        }
    }
}
