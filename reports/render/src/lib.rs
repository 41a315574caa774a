//! Verdicts, the report model and its renderers.
