//! [`is_common`]: words that are in prompts of all kinds, so a skill doesn't fit a prompt because it has them.
//!
//! In a search over few skills, the frequency of a word in the descriptions doesn't tell if it is common.

/// Common words in lower case: words of general English, and words that are in most prompts about code.
const COMMON: &str = "\
    able above across actual add after again all allow already also always another anything app \
    application apply area around ask away back bad bar based because before begin below best better \
    between bit both box bring bug build but button call case change check choose class clean clear \
    click close code come command comment common compare complete component contain content context \
    control copy correct could count cover create current custom data date day default define delete \
    detail did difference different directory do don done down each easy edit else empty end enough \
    error even ever every example except exist existing expect explain fail far fast feature few field \
    file find finish first fit fix folder follow format found full function gave general generate get \
    give given go goes going good got great group guide had handle happen hard has he her here high hold \
    however icon id idea if import improve include index input instead interface item itself job just \
    keep key kind know language large last late later layer least leave left less let level library like \
    line link list load local log long look loop lot low made main make manage many matter maybe mean \
    member message method might mode model module more most move much multiple must name need never new \
    next nice no node non normal not note nothing now number object off often ok old once one only onto \
    open option order other out output over own package page parallel parameter part pass path people \
    perform place plan platform point possible print problem process produce product program project \
    proper provide put question quick quite read ready real really reason remove rename repeat replace \
    repo repository request require resource response rest result return right role root row rule run \
    same save say screen script search second section see seem select send server service session set \
    setting several she should show similar simple since single site size skip small solution someone \
    something source space special specific split stack start state step still stop store string style \
    such support sure system tab table tag take talk task team tell template test text than thank their \
    these they thing think those three through time title today together too tool top track tree true \
    try turn two type under understand unit until update upload usage used useful user using usual value \
    variable various version very via view wait walk was way web website week well went were while whole \
    whose within without wonder word work workflow write wrong wrote year yes yet zero";

/// Returns true if a word, in lower case, is a form of a common word, a number or a single letter.
pub(super) fn is_common(word: &str) -> bool {
    word.len() < 2
        || word.bytes().all(|byte| byte.is_ascii_digit())
        || COMMON.split(' ').any(|common| is_form(word, common))
}

/// Returns true if `word` is a regular form of the common word, such as `files` of `file` or `running` of `run`.
fn is_form(word: &str, common: &str) -> bool {
    let Some(end) = word.strip_prefix(common) else {
        let rest = |last: char| common.strip_suffix(last).and_then(|begin| word.strip_prefix(begin));
        return rest('e') == Some("ing") || matches!(rest('y'), Some("ies" | "ied"));
    };
    let doubled = common.chars().next_back().and_then(|last| end.strip_prefix(last));
    matches!(end, "" | "s" | "es" | "d" | "ed" | "ing" | "ly" | "er" | "ers")
        || matches!(doubled, Some("ing" | "ed" | "er"))
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn forms_of_common_words_are_common() {
        for word in
            ["file", "files", "running", "creating", "created", "checks", "copies", "tried", "x", "42"]
        {
            assert!(is_common(word), "{word}");
        }
        for word in ["kubernetes", "review", "invoice", "pdf", "queries", "noise", "翻译", ""] {
            assert_eq!(is_common(word), word.is_empty(), "{word}");
        }
    }
}
