//! Clauses as data, and what witnesses them.
//!
//! A clause is one rule of the contract: its id, how binding it is, whom it binds, where it comes
//! from, and what it says. Checks refer to clauses by id and take their level from here; no check
//! has an opinion of its own on how binding something is.

mod clause;
mod evidence;
pub mod format;
pub mod monitor;
pub mod mutate;
pub mod run;
mod scarce;
mod schema;
pub mod subject;
pub mod suite;
#[cfg(unix)]
pub mod tap;

pub use clause::{
    Clause, Clauses, ClausesError, Judged, Level, Profile, Section, Side, Source, SourceError,
    UNNUMBERED_RULES, UnknownClause,
};
pub use evidence::{Evidence, EvidenceError, Witness, WitnessKind};
pub use schema::{clauses_schema, scenario_schema};
