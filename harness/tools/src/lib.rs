//! Tool definitions, registry, call pipeline and timeout policy.
