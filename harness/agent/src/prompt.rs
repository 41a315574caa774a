//! The system prompt: sections of plugins, in an order that does not depend on who came first.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};

/// One plugin's part of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSection {
    /// Whose it is, `lsp` for instance; also decides between sections of one order.
    pub name: String,
    /// Lower ones come first.
    pub order: i32,
    /// What the model reads. Blank sections are left out.
    pub text: String,
}

/// The system prompt service.
#[derive(Clone, Default)]
pub struct SystemPrompt(Arc<Mutex<Sections>>);

#[derive(Default)]
struct Sections {
    next: u64,
    list: Vec<(u64, PromptSection)>,
}

impl SystemPrompt {
    /// A prompt without sections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a section until the handle is released or dropped.
    #[must_use = "dropping the handle removes the section"]
    pub fn add_section(&self, section: PromptSection) -> SectionHandle {
        let mut sections = self.sections();
        let id = sections.next;
        sections.next += 1;
        sections.list.push((id, section));
        SectionHandle {
            prompt: self.clone(),
            id,
        }
    }

    /// The prompt as it stands (RUN-12): the sections by order, then by name, then by age, with one
    /// blank line between two of them. Empty when there is none.
    pub fn assemble(&self) -> String {
        let sections = self.sections();
        let mut list: Vec<_> = sections
            .list
            .iter()
            .filter(|(_, section)| !section.text.trim().is_empty())
            .collect();
        list.sort_by(|(a_id, a), (b_id, b)| {
            (a.order, &a.name, a_id).cmp(&(b.order, &b.name, b_id))
        });
        let texts: Vec<_> = list
            .iter()
            .map(|(_, section)| section.text.trim_end())
            .collect();
        texts.join("\n\n")
    }

    fn sections(&self) -> MutexGuard<'_, Sections> {
        // A list of whole sections is in order after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SystemPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.sections().list.iter().map(|(_, section)| section))
            .finish()
    }
}

/// A section in the prompt; dropping it removes the section.
#[must_use = "dropping the handle removes the section"]
#[derive(Debug)]
pub struct SectionHandle {
    prompt: SystemPrompt,
    id: u64,
}

impl SectionHandle {
    /// Removes the section. The same as dropping the handle, in words.
    pub fn release(self) {}
}

impl Drop for SectionHandle {
    fn drop(&mut self) {
        self.prompt.sections().list.retain(|(id, _)| *id != self.id);
    }
}

/// Provides [`SystemPrompt`]; part of the base, without a row of its own.
#[derive(Debug, Default)]
pub struct SystemPromptPlugin;

#[async_trait]
impl Plugin for SystemPromptPlugin {
    fn name(&self) -> &'static str {
        "dsh-system-prompt"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<SystemPrompt>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide(Arc::new(SystemPrompt::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &str, order: i32, text: &str) -> PromptSection {
        PromptSection {
            name: name.to_owned(),
            order,
            text: text.to_owned(),
        }
    }

    /// RUN-12: the order of the sections, whoever was mounted first.
    #[test]
    fn sections_are_ordered_whatever_order_they_came_in() {
        let parts = [
            section("b", 1, "B\n"),
            section("a", 1, "A"),
            section("z", 0, "Z"),
        ];
        for rotation in 0..parts.len() {
            let prompt = SystemPrompt::new();
            let mut parts = parts.clone();
            parts.rotate_left(rotation);
            let handles = parts.map(|part| prompt.add_section(part));
            assert_eq!(prompt.assemble(), "Z\n\nA\n\nB");
            drop(handles);
        }
    }

    /// RUN-1: what was added can be taken back.
    #[test]
    fn a_section_is_gone_with_its_handle_and_no_other_one_is() {
        let prompt = SystemPrompt::new();
        let one = prompt.add_section(section("same", 0, "one"));
        let two = prompt.add_section(section("same", 0, "two"));
        assert_eq!(prompt.assemble(), "one\n\ntwo");
        one.release();
        assert_eq!(prompt.assemble(), "two");
        drop(two);
        assert_eq!(prompt.assemble(), "");
    }

    #[test]
    fn a_blank_section_leaves_no_gap() {
        let prompt = SystemPrompt::new();
        let _blank = prompt.add_section(section("a", 0, " \n"));
        let _text = prompt.add_section(section("b", 0, "text"));
        assert_eq!(prompt.assemble(), "text");
    }
}
