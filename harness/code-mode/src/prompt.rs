//! What the tool says of itself: its description, and a section of the system prompt that follows
//! the tools there are.

use std::sync::{Mutex, PoisonError};

use dsh_agent::{PromptSection, SectionHandle, SystemPrompt};
use dsh_tools::{ToolRegistry, ToolSchema};

use crate::names::{mount, signature};

/// The name the model calls the tool by.
pub const NAME: &str = "run_code";

/// The description that goes to the model with the schema of the arguments.
pub(crate) const DESCRIPTION: &str = "Runs JavaScript that calls the other tools: \
    `await tools.NAME(arguments)` takes the tool's arguments and returns its value as an object, or \
    throws an Error with `code` and `message`. Return a JSON value; console.log is shown too. There \
    are no files, no network, no modules and no timers but through tools.";

/// Where the section stands among those of other plugins.
const ORDER: i32 = 120;

/// The section for these tools.
pub(crate) fn section(tools: &[ToolSchema]) -> String {
    let mut text = String::from(
        "Use run_code when several tool calls depend on each other, repeat, or give more than you \
         need: write one script, do the filtering in it, and return only what matters. The code is \
         the body of an async function. Calls that do not depend on each other may be made together \
         with Promise.all. A call returns the tool's value, not the text you would read: print one \
         to see its form. A failed call throws; catch the error to go on. Await every call.",
    );
    let mounted = mount(tools, NAME);
    if mounted.is_empty() {
        return text;
    }
    text.push_str("\n\nIn a script there are:");
    for mounted in &mounted {
        if let Some(tool) = tools.iter().find(|tool| tool.name == mounted.name) {
            text.push_str("\n- ");
            text.push_str(&signature(mounted, tool));
        }
    }
    text
}

/// The section as it stands in the prompt.
pub(crate) struct Section {
    prompt: SystemPrompt,
    registry: ToolRegistry,
    /// None once it was taken out.
    current: Mutex<Option<(String, SectionHandle)>>,
}

impl Section {
    /// Puts the section in.
    pub(crate) fn new(prompt: SystemPrompt, registry: ToolRegistry) -> Self {
        let text = section(&registry.list());
        let handle = add(&prompt, &text);
        Self {
            prompt,
            registry,
            current: Mutex::new(Some((text, handle))),
        }
    }

    /// Brings it up to date with the tools there are; the prompt stays as it is if they are the same.
    pub(crate) fn refresh(&self) {
        let text = section(&self.registry.list());
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((old, handle)) = &mut *current
            && *old != text
        {
            *handle = add(&self.prompt, &text);
            *old = text;
        }
    }

    /// Takes it out for good.
    pub(crate) fn release(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        drop(current.take());
    }
}

fn add(prompt: &SystemPrompt, text: &str) -> SectionHandle {
    prompt.add_section(PromptSection {
        name: NAME.to_owned(),
        order: ORDER,
        text: text.to_owned(),
    })
}
