//! Subject files: how a subject is started, what it claims, and which cases are known to fail.
