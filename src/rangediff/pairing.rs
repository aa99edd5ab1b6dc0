//! Which patches of two versions are a pair.
//!
//! Hides git's cost rule, and that identities come before it.

use std::collections::HashMap;

use anyhow::Result;

use super::assign::{Costs, assign};
use super::text::{Normal, cost};
use super::{By, Patch};
use crate::exec::check_interrupted;

/// More than any pair can cost (git's `COST_MAX`).
const NEVER: i64 = 1 << 16;

/// The pairs found so far.
pub(super) struct Matches {
    new_of: Vec<Option<usize>>,
    old_of: Vec<Option<(usize, By)>>,
}

impl Matches {
    /// No pairs yet.
    pub(super) fn new(old: usize, new: usize) -> Self {
        Self {
            new_of: vec![None; old],
            old_of: vec![None; new],
        }
    }

    /// Why a new patch has its partner.
    pub(super) fn reason(&self, new: usize) -> Option<By> {
        self.old_of[new].map(|(_, by)| by)
    }

    fn pair(&mut self, old: usize, new: usize, by: By) {
        self.new_of[old] = Some(new);
        self.old_of[new] = Some((old, by));
    }

    /// Pairs what both sides know by the same identity. One that a side gives twice names nothing.
    pub(super) fn by_identity(&mut self, old: &[Patch], new: &[Patch]) {
        let known = unique(old);
        for (identity, at) in unique(new) {
            if let Some(&old) = known.get(identity) {
                self.pair(old, at, By::Identity);
            }
        }
    }

    /// Pairs patches with the same diff. Of several the last of the old version goes first, as git has it.
    pub(super) fn by_text(&mut self, old: &[Normal], new: &[Normal]) {
        let mut known: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (at, normal) in old.iter().enumerate() {
            if self.new_of[at].is_none() {
                known.entry(normal.diff()).or_default().push(at);
            }
        }
        for (at, normal) in new.iter().enumerate() {
            if self.old_of[at].is_none()
                && let Some(old) = known.get_mut(normal.diff()).and_then(Vec::pop)
            {
                self.pair(old, at, By::Text);
            }
        }
    }

    /// Pairs what is left where the lines of the difference are fewer than those of dropping one and writing the other.
    pub(super) fn by_content(&mut self, old: &[Normal], new: &[Normal], factor: u32) -> Result<()> {
        let costs = self.costs(old, new, i64::from(factor))?;
        for (before, after) in assign(&costs).into_iter().enumerate().take(old.len()) {
            if after < new.len() && self.new_of[before].is_none() {
                self.pair(before, after, By::Content);
            }
        }
        Ok(())
    }

    /// What these pairs and single patches cost, given the pairs that are known for certain.
    pub(super) fn price(
        &self,
        old: &[Normal],
        new: &[Normal],
        pairs: &[(Option<usize>, Option<usize>)],
        factor: u32,
    ) -> Result<i64> {
        let costs = self.costs(old, new, i64::from(factor))?;
        let prices = pairs.iter().map(|pair| match *pair {
            (Some(before), Some(after)) => costs.at(before, after),
            (Some(before), None) => costs.at(before, new.len()),
            (None, Some(after)) => costs.at(old.len(), after),
            (None, None) => 0,
        });
        Ok(prices.sum())
    }

    /// What each pair costs; beyond the patches stand as many empty partners, so that each may stay alone.
    fn costs(&self, old: &[Normal], new: &[Normal], factor: i64) -> Result<Costs> {
        let size = old.len() + new.len();
        let mut costs = Costs::new(size);
        let alone = |normal: &Normal, is_free: bool| match i64::try_from(normal.size) {
            Ok(lines) if is_free => lines * factor / 100,
            _ => NEVER,
        };
        for (column, before) in old.iter().enumerate() {
            check_interrupted()?;
            for (row, after) in new.iter().enumerate() {
                costs.set(column, row, self.cost(column, row, before, after)?);
            }
            for row in new.len()..size {
                costs.set(column, row, alone(before, self.new_of[column].is_none()));
            }
        }
        for (row, after) in new.iter().enumerate() {
            for column in old.len()..size {
                costs.set(column, row, alone(after, self.old_of[row].is_none()));
            }
        }
        Ok(costs)
    }

    fn cost(&self, old: usize, new: usize, before: &Normal, after: &Normal) -> Result<i64> {
        Ok(match (self.new_of[old], self.old_of[new]) {
            (Some(partner), _) if partner == new => 0,
            (None, None) => i64::try_from(cost(before, after)?)?,
            _ => NEVER,
        })
    }

    /// Pairs and single patches in git's order.
    pub(super) fn in_order(&self) -> Vec<(Option<usize>, Option<usize>)> {
        let mut order = Vec::new();
        let mut shown = vec![false; self.new_of.len()];
        let mut old = 0;
        for (new, partner) in self.old_of.iter().enumerate() {
            // A dropped patch comes once all that were before it have been listed.
            while old < shown.len() && (shown[old] || self.new_of[old].is_none()) {
                if !shown[old] {
                    order.push((Some(old), None));
                }
                old += 1;
            }
            if let Some((before, _)) = partner {
                shown[*before] = true;
            }
            order.push((partner.map(|(before, _)| before), Some(new)));
        }
        let rest = (old..shown.len()).filter(|&old| !shown[old]);
        order.extend(rest.map(|old| (Some(old), None)));
        order
    }
}

/// The identities of a version that name one patch.
fn unique(patches: &[Patch]) -> HashMap<&str, usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, patch) in patches.iter().enumerate() {
        if let Some(identity) = &patch.identity {
            places.entry(identity).or_default().push(at);
        }
    }
    let single = places.into_iter().filter(|(_, places)| places.len() == 1);
    single
        .map(|(identity, places)| (identity, places[0]))
        .collect()
}
