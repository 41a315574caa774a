//! The model-facing lsp tool: arguments, rendering, presentation.
