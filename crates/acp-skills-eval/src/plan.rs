//! [`Plan`]: the runs of an evaluation, and what they depend on.

use std::{collections::BTreeMap, fs};

use skills_core::{Skill, SkillFiles, Source, order, skill::Sha256};

use super::{
    Case, Configuration, Evaluation, EvaluationError, Grader, Options, OutputCase, RunId, error::MAX_RUNS,
};

/// The maximum number of files of a skill that are compared before an evaluation is resumed.
const MAX_FILES: usize = 10_000;

/// The runs of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The runs, in the order in which they start. With a shard, only its runs.
    pub runs: Vec<RunId>,
    /// The number of turns of each agent by name. A grader that is not one of the agents is counted as `None`.
    pub turns: BTreeMap<Option<String>, usize>,
}

impl Evaluation {
    /// Returns the planned runs.
    ///
    /// # Errors
    /// Returns [`EvaluationError::NoCases`] if there are neither queries nor tasks, and [`EvaluationError::TooManyRuns`] if there are
    /// more than a million runs.
    pub fn plan(&self) -> Result<Plan, EvaluationError> {
        if self.queries.is_empty() && self.evals.is_empty() {
            return Err(EvaluationError::NoCases(self.dir.clone()));
        }
        let cases = 2 * (self.queries.len() + self.evals.len()) as u64;
        let number = cases.saturating_mul(self.agents.len() as u64).saturating_mul(self.options.runs.into());
        if number > MAX_RUNS {
            return Err(EvaluationError::TooManyRuns(number));
        }
        let mut runs = Vec::new();
        let compared = self.compared_with();
        // Queries are only run with the skill, because otherwise there is nothing to load.
        let for_queries = [Some(Configuration::WithSkill), self.baseline.is_some().then_some(compared)];
        for number in 1..=self.options.runs {
            for agent in &self.agents {
                let id =
                    |case, configuration| RunId { agent: agent.name.clone(), case, configuration, number };
                for place in 0..self.queries.len() {
                    let configurations = for_queries.into_iter().flatten();
                    runs.extend(configurations.map(|configuration| id(Case::Query(place), configuration)));
                }
                for case in &self.evals {
                    for configuration in [Configuration::WithSkill, compared] {
                        runs.push(id(Case::Eval(case.name.clone()), configuration));
                    }
                }
            }
        }
        // Finish all runs of a case before we start the next one, so that we have complete results for some of the
        // cases if the evaluation is stopped.
        order::sort_by_key(&mut runs, |run| (run.case.clone(), run.number));
        if let Some(shard) = self.options.shard {
            let mut place = 0..;
            runs.retain(|_| place.next().is_some_and(|place| shard.contains(place)));
        }
        let turns = self.turns(&runs);
        Ok(Plan { runs, turns })
    }

    /// Returns the number of turns of each agent in these runs. Graders that are not one of the agents are counted as `None`.
    fn turns(&self, runs: &[RunId]) -> BTreeMap<Option<String>, usize> {
        let mut turns: BTreeMap<_, usize> = BTreeMap::new();
        for run in runs {
            let case = self.task(&run.case);
            let prompts = case.map_or(1, |case| 1 + case.turns.len());
            *turns.entry(Some(run.agent.clone())).or_default() += prompts;
            if !case.is_some_and(OutputCase::has_sentences) {
                continue;
            }
            match &self.options.grader {
                Grader::Nobody => continue,
                Grader::Same => *turns.entry(Some(run.agent.clone())).or_default() += 1,
                Grader::Command(_) => *turns.entry(None).or_default() += 1,
            }
            if self.options.second_grader.is_some() {
                *turns.entry(None).or_default() += 1;
            }
        }
        turns
    }

    /// Returns the task of a case, or `None` for a query.
    pub(super) fn task(&self, case: &Case) -> Option<&OutputCase> {
        match case {
            Case::Eval(name) => self.evals.iter().find(|case| case.name == *name),
            Case::Query(_) => None,
        }
    }

    /// Returns a hash of everything that the runs depend on. An evaluation can be resumed only if it is unchanged.
    pub(super) fn fingerprint(&self) -> String {
        let mut all = Vec::new();
        for skill in [&self.skill].into_iter().chain(&self.among).chain(&self.baseline) {
            all.extend(instructions(skill));
            all.extend(other_files(skill));
        }
        let Options { runs, timeout, allow, grader, second_grader, isolate, .. } = &self.options;
        let Self { queries, evals, agents, .. } = self;
        all.extend(
            format!(
                "{queries:?}{evals:?}{agents:?}{runs}{timeout:?}{allow:?}{grader:?}{second_grader:?}{isolate}"
            )
            .bytes(),
        );
        Sha256::of(&all).to_string()
    }

    /// Returns a hash of the text of the skill's `SKILL.md`.
    pub(super) fn skill_version(&self) -> String {
        Sha256::of(&instructions(&self.skill)).to_string()
    }
}

/// Returns the text of the skill's `SKILL.md`. It is empty for a skill without files.
fn instructions(skill: &Skill) -> Vec<u8> {
    match (skill.dir(), &skill.source) {
        (Some(_), Source::Stored(stored)) => fs::read(stored.file()).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Returns the path and the checksum of each file of a skill except its `SKILL.md`, because scripts and references change results
/// as well.
fn other_files(skill: &Skill) -> Vec<u8> {
    let (Some(dir), Ok(files)) = (skill.dir(), SkillFiles::of(skill)) else { return Vec::new() };
    let mut all = Vec::new();
    for file in files.list(MAX_FILES).files {
        all.extend(file.path.as_bytes());
        all.push(0);
        let mut content = fs::File::open(dir.join(&file.path));
        let digest = content.as_mut().ok().and_then(|content| Sha256::of_content(content).ok());
        all.extend(digest.iter().flat_map(Sha256::as_bytes));
    }
    all
}
