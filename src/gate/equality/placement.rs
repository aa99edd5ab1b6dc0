//! The same code at several places: how fast a loop is depends on where it lies in a page, and on what lies around it.
//!
//! One placement holds all states of the source at the same offset, so that what a patch leaves as it is lies in the same place of a
//! page as in the base; from placement to placement the offset and the order of linking change. What holds at all of them is the code's
//! doing, what holds at one is an accident.

use std::fmt::Write as _;

/// The alignment of code, and what the offsets of all placements are spread over.
const PAGE: u32 = 4096;

/// A line of the cache: offsets are whole ones, and a quarter more from one to the next.
const LINE: u32 = 64;

/// Where code is in an object.
const CODE_SECTIONS: [&str; 5] = [
    ".text",
    ".text.unlikely",
    ".ref.text",
    ".meminit.text",
    ".init.text",
];

/// One of several placements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placement {
    /// Its number, from 0.
    pub(super) number: u32,
    /// Of so many.
    of: u32,
}

impl Placement {
    /// All of `count` placements.
    pub(super) fn all(count: u32) -> impl Iterator<Item = Self> {
        (0..count).map(move |number| Self { number, of: count })
    }

    /// How far behind the start of a page the code starts, in bytes; an object that asks for more alignment gets that.
    pub(super) fn offset(self) -> u32 {
        let page = PAGE * self.number / self.of / LINE * LINE;
        page + LINE / 4 * (self.number % 4)
    }

    /// Assembly that fills each section of code from the start of a page up to the offset.
    pub(super) fn padding(self) -> String {
        let mut text = String::new();
        for section in CODE_SECTIONS {
            let _ = writeln!(
                text,
                "\t.section {section}, \"ax\", %progbits\n\t.balign {PAGE}\n\t.skip {}",
                self.offset()
            );
        }
        text
    }

    /// `items` in the order in which this placement links them.
    pub(super) fn order<T>(self, mut items: Vec<T>) -> Vec<T> {
        let by = self.number as usize % items.len().max(1);
        items.rotate_right(by);
        items
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn placements_are_spread_over_a_page_and_over_a_line() {
        let offsets: Vec<_> = Placement::all(8).map(Placement::offset).collect();
        assert_eq!(offsets, [0, 528, 1056, 1584, 2048, 2576, 3104, 3632]);
        let within: BTreeSet<_> = offsets.iter().map(|offset| offset % LINE).collect();
        assert_eq!(within.len(), 4);
    }

    #[test]
    fn more_placements_than_lines_of_a_page_stay_within_it() {
        assert!(Placement::all(100).all(|it| it.offset() < PAGE));
    }

    #[test]
    fn each_item_is_linked_first_in_turn_and_the_base_at_first() {
        let first = |it: Placement| it.order(vec!["base", "p1", "p2"])[0];
        let firsts: Vec<_> = Placement::all(4).map(first).collect();
        assert_eq!(firsts, ["base", "p2", "p1", "base"]);
        assert!(
            Placement { number: 1, of: 2 }
                .order(Vec::<u8>::new())
                .is_empty()
        );
    }
}
