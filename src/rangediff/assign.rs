//! Who is paired with whom at the least cost: the linear assignment problem.
//!
//! Hides the algorithm of Jonker and Volgenant (1987) in the order of steps of git's `linear-assignment.c`.
//!
//! The order matters: where two answers cost the same, another solver gives the other one, and the result would not be
//! `git range-diff`'s. One step is not git's (2.47): when git has found that a free column can be reached, it goes on from
//! the column that it looked at last, which may be another one. Its answer then is not the cheapest, and loses pairs.

/// A square matrix of costs.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    size: usize,
    cells: Vec<i64>,
}

impl Costs {
    /// A matrix of zeros.
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            cells: vec![0; size * size],
        }
    }

    /// Sets what it costs to pair a column with a row.
    pub(super) fn set(&mut self, column: usize, row: usize, cost: i64) {
        self.cells[column + self.size * row] = cost;
    }

    /// What it costs to pair a column with a row.
    pub(super) fn at(&self, column: usize, row: usize) -> i64 {
        self.cells[column + self.size * row]
    }
}

/// The row of each column, at the least cost in all.
pub(super) fn assign(costs: &Costs) -> Vec<usize> {
    if costs.size < 2 {
        return vec![0; costs.size];
    }
    let mut solver = Solver {
        costs,
        price: vec![0; costs.size],
        row_of: vec![None; costs.size],
        column_of: vec![None; costs.size],
    };
    let once = solver.reduce_columns();
    let mut free = solver.transfer(&once);
    if !free.is_empty() {
        for _ in 0..2 {
            free = solver.reduce_rows(free);
        }
        for row in free {
            solver.augment(row);
        }
    }
    solver
        .row_of
        .iter()
        .map(|row| row.unwrap_or_default())
        .collect()
}

/// An assignment that is not complete yet.
struct Solver<'a> {
    costs: &'a Costs,
    /// What a column's cheapest partner costs (the dual variables).
    price: Vec<i64>,
    row_of: Vec<Option<usize>>,
    column_of: Vec<Option<usize>>,
}

impl Solver<'_> {
    fn reduced(&self, column: usize, row: usize) -> i64 {
        self.costs.at(column, row) - self.price[column]
    }

    fn pair(&mut self, column: usize, row: usize) {
        self.row_of[column] = Some(row);
        self.column_of[row] = Some(column);
    }

    /// Gives each column its cheapest row where that is free; which rows were asked for once only.
    fn reduce_columns(&mut self) -> Vec<bool> {
        let size = self.costs.size;
        let mut once = vec![true; size];
        for column in (0..size).rev() {
            let mut cheapest = 0;
            for row in 1..size {
                if self.costs.at(column, cheapest) > self.costs.at(column, row) {
                    cheapest = row;
                }
            }
            self.price[column] = self.costs.at(column, cheapest);
            if self.column_of[cheapest].is_none() {
                self.pair(column, cheapest);
            } else {
                once[cheapest] = false;
            }
        }
        once
    }

    /// Lowers the price of columns whose row nobody else wants; the rows that are free.
    fn transfer(&mut self, once: &[bool]) -> Vec<usize> {
        let size = self.costs.size;
        let mut free = Vec::new();
        for (row, &once) in once.iter().enumerate() {
            match self.column_of[row] {
                None => free.push(row),
                Some(own) if once => {
                    let others = (0..size).filter(|&column| column != own);
                    let least = others.map(|column| self.reduced(column, row)).min();
                    self.price[own] -= least.unwrap_or_default();
                }
                Some(_) => {}
            }
        }
        free
    }

    /// Gives free rows their cheapest column, and looks again for those who lose theirs; the rows still free.
    fn reduce_rows(&mut self, mut free: Vec<usize>) -> Vec<usize> {
        let mut still_free = Vec::new();
        let mut next = 0;
        while next < free.len() {
            let row = free[next];
            next += 1;
            let [(first, least), (second, runner_up)] = self.two_cheapest(row);
            let mut column = first;
            if least < runner_up {
                self.price[column] -= runner_up - least;
            } else if self.row_of[column].is_some() {
                column = second;
            }
            if let Some(loser) = self.row_of[column] {
                if least < runner_up {
                    next -= 1;
                    free[next] = loser;
                } else {
                    still_free.push(loser);
                }
            }
            self.pair(column, row);
        }
        still_free
    }

    /// The two columns that are cheapest for a row, with their costs.
    fn two_cheapest(&self, row: usize) -> [(usize, i64); 2] {
        let mut first = (0, self.reduced(0, row));
        let mut second = None;
        for column in 1..self.costs.size {
            let cost = self.reduced(column, row);
            if second.is_some_and(|(_, known)| known <= cost) {
                continue;
            }
            if first.1 < cost {
                second = Some((column, cost));
            } else {
                second = Some(first);
                first = (column, cost);
            }
        }
        [first, second.unwrap_or(first)]
    }

    /// Finds the shortest way from a free row to a free column, and moves every pair on it.
    fn augment(&mut self, free_row: usize) {
        let size = self.costs.size;
        let mut way = Way {
            cost: (0..size)
                .map(|column| self.reduced(column, free_row))
                .collect(),
            from: vec![free_row; size],
            columns: (0..size).collect(),
            low: 0,
            up: 0,
        };
        let (end, least, done) = loop {
            let done = way.low;
            let least = way.next_cheapest();
            let open = way.columns[way.low..way.up].iter();
            if let Some(&end) = open
                .into_iter()
                .find(|&&column| self.row_of[column].is_none())
            {
                break (end, least, done);
            }
            if let Some(end) = self.scan(&mut way, least) {
                break (end, least, done);
            }
        };
        for &column in &way.columns[..done] {
            self.price[column] += way.cost[column] - least;
        }
        let mut column = end;
        loop {
            let row = way.from[column];
            self.row_of[column] = Some(row);
            let before = self.column_of[row].replace(column);
            match before {
                Some(before) if row != free_row => column = before,
                _ => return,
            }
        }
    }

    /// Looks at the rows of the cheapest columns; a free column that costs no more, if one is met.
    fn scan(&self, way: &mut Way, least: i64) -> Option<usize> {
        while way.low != way.up {
            let here = way.columns[way.low];
            way.low += 1;
            let row = self.row_of[here]?;
            let used = self.reduced(here, row) - least;
            for at in way.up..self.costs.size {
                let column = way.columns[at];
                let cost = self.reduced(column, row) - used;
                if cost >= way.cost[column] {
                    continue;
                }
                way.cost[column] = cost;
                way.from[column] = row;
                if cost == least {
                    if self.row_of[column].is_none() {
                        return Some(column);
                    }
                    way.columns.swap(at, way.up);
                    way.up += 1;
                }
            }
        }
        None
    }
}

/// The state of a search for the shortest way.
struct Way {
    /// What it costs to come to each column.
    cost: Vec<i64>,
    /// From which row one comes to it.
    from: Vec<usize>,
    /// The columns: those looked at, then (from `low`) the cheapest, then (from `up`) the rest.
    columns: Vec<usize>,
    low: usize,
    up: usize,
}

impl Way {
    /// Gathers the cheapest of the columns not looked at yet; their cost.
    fn next_cheapest(&mut self) -> i64 {
        let mut least = self.cost[self.columns[self.up]];
        self.up += 1;
        for at in self.up..self.columns.len() {
            let cost = self.cost[self.columns[at]];
            if cost > least {
                continue;
            }
            if cost < least {
                self.up = self.low;
                least = cost;
            }
            self.columns.swap(at, self.up);
            self.up += 1;
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cheapest(costs: &Costs, column: usize, taken: &mut Vec<bool>) -> i64 {
        if column == costs.size {
            return 0;
        }
        let mut best = i64::MAX;
        for row in 0..costs.size {
            if !taken[row] {
                taken[row] = true;
                best = best.min(costs.at(column, row) + cheapest(costs, column + 1, taken));
                taken[row] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_other_assignment_costs_less(size in 1_usize..7, cells in prop::collection::vec(0_i64..12, 49)) {
            let costs = Costs { size, cells: cells[..size * size].to_vec() };
            let rows = assign(&costs);
            let mut taken = vec![false; size];
            for &row in &rows {
                prop_assert!(!std::mem::replace(&mut taken[row], true), "a row is given twice: {rows:?}");
            }
            let total: i64 = rows.iter().enumerate().map(|(column, &row)| costs.at(column, row)).sum();
            prop_assert_eq!(total, cheapest(&costs, 0, &mut vec![false; size]));
        }
    }
}
