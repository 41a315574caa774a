//! Models that speak OpenAI-compatible chat completions over HTTP.
