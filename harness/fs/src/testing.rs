//! What tests have in common.

/// Takes from this thread what lets root pass over permissions.
#[cfg(target_os = "linux")]
pub(crate) fn obey_permissions() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).expect("told");
    sets.effective &= !(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).expect("given up");
}
