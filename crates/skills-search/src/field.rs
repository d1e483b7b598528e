//! [`Field`]: the words of one part of all texts, with their BM25 scores.

/// The length normalization parameter of BM25.
const B: f32 = 0.75;

/// The words of one part of all texts, such as their titles. Texts have the numbers 0, 1, 2… in the order in which they are added, and
/// words have the numbers of a vocabulary ([`Words`](crate::Words)).
#[derive(Debug)]
pub struct Field {
    /// The saturation parameter of BM25.
    k1: f32,
    /// The weight of one unit.
    unit: f32,
    /// The texts that contain a word, by the number of the word.
    postings: Vec<Postings>,
    /// The length of each text: the sum of the weights of its words. 0 if the text is empty.
    lengths: Vec<f32>,
    average: f32,
    /// The weight of each word in the text that is being added, in units, by the number of the word.
    weights: Vec<u8>,
    /// The words in the text that is being added.
    words: Vec<u32>,
    length: u32,
}

impl Field {
    /// Creates a field without texts. `k1` is the saturation parameter of BM25, and `unit` is the weight of one unit in [`add`](Self::add).
    pub fn new(k1: f32, unit: f32) -> Self {
        let postings = Vec::new();
        let lengths = Vec::new();
        Self { k1, unit, postings, lengths, average: 0.0, weights: Vec::new(), words: Vec::new(), length: 0 }
    }

    /// Adds a word with a weight in units to the current text. The total weight of a word in a text is limited to 255 units.
    pub fn add(&mut self, word: u32, units: u8) {
        let at = word as usize;
        if self.weights.len() <= at {
            self.weights.resize(at + 1, 0);
        }
        if self.weights[at] == 0 {
            self.words.push(word);
        }
        self.weights[at] = self.weights[at].saturating_add(units);
        self.length += u32::from(units);
    }

    /// Ends the current text and begins the next one.
    pub fn end_text(&mut self) {
        let number = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        if self.postings.len() < self.weights.len() {
            self.postings.resize_with(self.weights.len(), Postings::default);
        }
        for word in self.words.drain(..) {
            let weight = std::mem::take(&mut self.weights[word as usize]);
            self.postings[word as usize].push(number, weight);
        }
        self.lengths.push(count(self.length as usize) * self.unit);
        self.length = 0;
    }

    /// Computes the average length. Must be called once, after the last text was added.
    pub fn finish(&mut self) {
        let filled = self.lengths.iter().filter(|&&length| length > 0.0).count();
        self.average = self.lengths.iter().sum::<f32>() / count(filled).max(1.0);
        self.weights = Vec::new();
        self.words = Vec::new();
        self.postings.iter_mut().for_each(|postings| postings.bytes.shrink_to_fit());
        self.postings.shrink_to_fit();
        self.lengths.shrink_to_fit();
    }

    /// Calls `found` with the number of each text that contains the word, and the score that the word adds to it.
    pub fn scores(&self, word: u32, found: &mut dyn FnMut(usize, f32)) {
        let Some(postings) = self.postings.get(word as usize).filter(|postings| postings.texts > 0) else {
            return;
        };
        let idf = idf(self.lengths.len(), postings.texts as usize);
        for (number, units) in postings.iter() {
            let weight = f32::from(units) * self.unit;
            let length = self.lengths[number as usize] / self.average.max(f32::MIN_POSITIVE);
            let score = idf * weight * (self.k1 + 1.0) / (weight + self.k1 * (1.0 - B + B * length));
            found(number as usize, score);
        }
    }

    /// Returns the inverse document frequency of the rarest word, or 0 if there is no word.
    pub fn best_idf(&self) -> f32 {
        let rarest = self.postings.iter().map(|postings| postings.texts).filter(|&texts| texts > 0).min();
        rarest.map_or(0.0, |texts| idf(self.lengths.len(), texts as usize))
    }
}

/// The numbers of texts with a weight each. An entry takes two or three bytes: the distance to the previous number, in groups of
/// seven bits, and the weight.
#[derive(Debug, Default)]
struct Postings {
    bytes: Vec<u8>,
    last: u32,
    texts: u32,
}

impl Postings {
    /// Adds a text. Its number must be higher than the previous one.
    fn push(&mut self, number: u32, weight: u8) {
        let mut distance = number - self.last;
        while distance >= 0x80 {
            self.bytes.push(distance.to_le_bytes()[0] | 0x80);
            distance >>= 7;
        }
        self.bytes.push(distance.to_le_bytes()[0]);
        self.bytes.push(weight);
        self.last = number;
        self.texts += 1;
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u8)> {
        let mut bytes = self.bytes.iter().copied();
        let mut number = 0;
        std::iter::from_fn(move || {
            let mut shift = 0;
            loop {
                let byte = bytes.next()?;
                number += u32::from(byte & 0x7F) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            Some((number, bytes.next()?))
        })
    }
}

/// Returns the inverse document frequency of a word that `having` of `all` texts contain.
pub fn idf(all: usize, having: usize) -> f32 {
    let all = count(all);
    let having = count(having);
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 16 million")]
fn count(number: usize) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_keep_distant_numbers() {
        let mut postings = Postings::default();
        let entries = [(0, 1), (1, 255), (127, 3), (255, 0), (70_000, 9), (3_000_000_000, 2)];
        for (number, weight) in entries {
            postings.push(number, weight);
        }
        assert_eq!(postings.iter().collect::<Vec<_>>(), entries);
    }
}
