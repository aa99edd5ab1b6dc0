//! Whether what the gates found proves a series on its base: built after every patch in every configuration of the recipe, and run and
//! compared wherever the recipe says so. Anything less proves nothing, whatever passed.

use super::settings::Settings;
use super::{Name, Outcome, Status};

/// The gates that a proof needs.
pub const PROOF: [Name; 2] = [Name::Build, Name::Equality];

/// What a gate said of a patch, as far as a proof asks.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'a> {
    /// The gate.
    pub gate: Name,
    /// The patch's number, from 1.
    pub patch: Option<usize>,
    /// The configuration.
    pub configuration: Option<&'a str>,
    /// What it found.
    pub status: Status,
}

impl<'a> From<&'a Outcome> for Finding<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        Self {
            gate: outcome.gate,
            patch: outcome.patch,
            configuration: outcome.configuration.as_deref(),
            status: outcome.status,
        }
    }
}

/// The configurations that the proof of so many patches rests on; or what is missing for one, a line each.
pub fn proof<'a>(
    patches: usize,
    findings: impl IntoIterator<Item = impl Into<Finding<'a>>>,
    settings: &Settings,
) -> Result<Vec<String>, Vec<String>> {
    let findings: Vec<Finding<'_>> = findings.into_iter().map(Into::into).collect();
    let mut missing = Vec::new();
    if settings.configuration.is_empty() {
        missing.push("the recipe has no `[[check.configuration]]` to build in".to_owned());
    }
    let mut passed = Vec::new();
    for configuration in &settings.configuration {
        let name = configuration.name.as_str();
        let mut built = 0;
        for number in 1..=patches {
            let mut needs = |gate: Name| match found(&findings, gate, number, name) {
                Some(Status::Pass) => 1,
                Some(Status::Skipped) => 0,
                Some(status) => {
                    missing.push(
                        format!("gate `{gate}` of patch {number} on {name}: {status:?}")
                            .to_lowercase(),
                    );
                    0
                }
                None => {
                    missing.push(format!(
                        "gate `{gate}` of patch {number} on {name} was not run"
                    ));
                    0
                }
            };
            built += needs(Name::Build);
            let compared = settings
                .equality
                .as_ref()
                .filter(|_| configuration.equality);
            if compared.is_some_and(|it| it.after.is_empty() || it.after.contains(&number)) {
                needs(Name::Equality);
            }
        }
        if built > 0 {
            passed.push(name.to_owned());
        }
    }
    if passed.is_empty() && missing.is_empty() {
        missing.push("the recipe skips every build".to_owned());
    }
    if missing.is_empty() {
        Ok(passed)
    } else {
        Err(missing)
    }
}

/// What a gate says of a patch in a configuration: the worst of it.
fn found(
    findings: &[Finding<'_>],
    gate: Name,
    number: usize,
    configuration: &str,
) -> Option<Status> {
    let own = findings.iter().filter(|finding| {
        finding.gate == gate
            && finding.patch == Some(number)
            && finding.configuration == Some(configuration)
    });
    let order = |status: &Status| match status {
        Status::Pass => 0,
        Status::Skipped => 1,
        Status::Error => 2,
        Status::Fail => 3,
    };
    own.map(|finding| finding.status).max_by_key(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let text = "objects = [\"a.o\"]\nequality = { object = \"a.o\", entry = \"f\", harness = \"h\", after = [2] }\n[[configuration]]\nname = \"gcc\"\narch = \"x86_64\"\nequality = true\n";
        toml::from_str(text).expect("settings")
    }

    fn outcome(gate: Name, patch: usize, status: Status) -> Outcome {
        let mut outcome = Outcome::new(gate).patch(patch).configuration("gcc");
        outcome.status = status;
        outcome
    }

    fn proven(outcomes: &[Outcome], settings: &Settings) -> Result<Vec<String>, Vec<String>> {
        proof(2, outcomes, settings)
    }

    fn passes() -> Vec<Outcome> {
        vec![
            outcome(Name::Build, 1, Status::Pass),
            outcome(Name::Build, 2, Status::Pass),
            outcome(Name::Equality, 2, Status::Pass),
        ]
    }

    #[test]
    fn every_gate_that_the_recipe_asks_for_must_have_passed() {
        assert_eq!(proven(&passes(), &settings()), Ok(vec!["gcc".to_owned()]));
        for index in 0..3 {
            let mut fewer = passes();
            fewer.remove(index);
            assert!(proven(&fewer, &settings()).is_err(), "{index}");
            for status in [Status::Fail, Status::Error] {
                let mut worse = passes();
                worse[index].status = status;
                assert!(proven(&worse, &settings()).is_err(), "{index} {status:?}");
            }
        }
    }

    #[test]
    fn a_recipe_that_builds_nothing_proves_nothing() {
        assert!(proven(&passes(), &Settings::default()).is_err());
        let skipped = [1, 2].map(|patch| outcome(Name::Build, patch, Status::Skipped));
        let skipped = skipped
            .into_iter()
            .chain([outcome(Name::Equality, 2, Status::Skipped)]);
        assert!(proven(&skipped.collect::<Vec<_>>(), &settings()).is_err());
    }
}
