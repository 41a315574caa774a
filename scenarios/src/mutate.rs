//! Mutants: what a bad harness would do, as data, and whether anybody notices.
//!
//! A mutant tampers with a run of a good harness so that together they are a bad one: with the
//! messages between harness and server (`wire`), with what is asked of the harness and what it
//! answers (`result`), or with the life of the server's process (`life`). Each names the clauses
//! that are then broken. The suite is run against it; a case that fails has noticed.

mod edit;
mod form;
mod load;
mod messages;
#[cfg(unix)]
mod proxy;
mod result;
mod trial;
mod wire;

pub use edit::{Edit, Replacement, Swap};
pub use form::{
    Act, Failure, Got, Header, Insert, Life, Mutant, MutantFile, On, ResultRule, Spec, WireRule,
};
pub use load::{MutantError, Mutants, mutant_schema};
pub use messages::{MessageAct, Messages};
#[cfg(unix)]
pub use proxy::{hold, tamper};
pub use trial::{Fate, MutantResult, Power, needed, run, select};
