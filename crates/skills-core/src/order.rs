//! Sorting with little code.
//!
//! The sort of the standard library is compiled again for each type and for each order, at about 5 kB. The functions of this
//! module sort the numbers of the elements, so that it is compiled once. They are for short lists. For long lists of numbers, the
//! standard library is faster.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// Sorts a list. Equal elements keep their order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts a list by a key. Elements with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a list. Elements that `compare` considers equal keep their order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut ranks = ranks(items.len(), &|a, b| compare(&items[a], &items[b]));
    for place in 0..items.len() {
        // Each swap moves one element to its final place.
        while ranks[place] != place {
            let rank = ranks[place];
            items.swap(place, rank);
            ranks.swap(place, rank);
        }
    }
}

/// Returns the place of each element in the sorted list.
fn ranks(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    let mut ranks = vec![0; count];
    for (rank, number) in order.into_iter().enumerate() {
        ranks[number] = rank;
    }
    ranks
}

/// Returns a map of these entries. Unlike `collect`, this does not sort them first.
pub fn map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(entries);
    map
}

/// Returns a set of these elements. Unlike `collect`, this does not sort them first.
pub fn set<T: Ord>(elements: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(elements);
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_as_by_the_standard_library() {
        let mut state = 1_u32;
        for count in 0..60 {
            let random = |place| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 28, place)
            };
            let items: Vec<_> = (0..count).map(random).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|&(key, _)| std::cmp::Reverse(key));
            let mut sorted = items.clone();
            sort_by_key(&mut sorted, |&(key, _)| std::cmp::Reverse(key));
            assert_eq!(sorted, expected, "{items:?}");
            expected.sort_unstable();
            sort(&mut sorted);
            assert_eq!(sorted, expected, "{items:?}");
        }
    }
}
