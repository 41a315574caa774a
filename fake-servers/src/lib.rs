//! Scriptable stdio language server that can misbehave in every way a real one does.
