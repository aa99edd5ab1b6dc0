//! Reads `[check]` out of a recipe: objects follow their functions, and what would never run is refused.
//!
//! Hides the order of that.

use anyhow::{Context as _, Result};

use super::follow::follow;
use super::idle::idle;
use super::settings::Settings;
use crate::error::Refusal;
use crate::recipe::Recipe;
use crate::series::Whereabouts;

impl Settings {
    /// What a recipe says about checks. Objects that stand for a function are those of its file where that is known; else they are left
    /// out and named.
    pub fn of(recipe: &Recipe) -> Result<Self> {
        let Some(mut table) = recipe.series.check.clone() else {
            return Ok(Self::default());
        };
        let open = follow(&mut table, recipe)?;
        let mut settings: Self = table.try_into().with_context(|| {
            Refusal::usage(format!(
                "`[check]` in {}/series.toml is wrong",
                recipe.origin
            ))
        })?;
        settings.open = open;
        settings.validate()?;
        let patches: Vec<_> = recipe.patches.iter().map(|it| it.name.as_str()).collect();
        if let Some((what, word)) = idle(&settings, &patches) {
            let place = recipe.place_in_check(&word);
            return Err(Refusal::usage(format!("{place}: {what}"))
                .hint("a gate that never runs proves nothing, and a skip that skips nothing hides a mistake: mend the name or take it out")
                .into());
        }
        Ok(settings)
    }

    /// What a recipe says about checks on the base that its functions were found on.
    pub fn on(recipe: &Recipe, places: &[Whereabouts]) -> Result<Self> {
        let files = places
            .iter()
            .map(|place| (place.id.clone(), place.file.clone()));
        let settings = Self::of(&recipe.placed(&files.collect()))?;
        match settings.open.first() {
            Some(name) => Err(Refusal::drift(format!(
                "`[check]` follows `{name}()`, which was not found on this base"
            ))
            .hint("`reroll explain` says where it was looked for")
            .into()),
            None => Ok(settings),
        }
    }
}
