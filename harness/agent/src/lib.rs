//! The agent: system prompt assembly.

mod prompt;

pub use prompt::{PromptSection, SectionHandle, SystemPrompt, SystemPromptPlugin};
