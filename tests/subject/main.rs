//! Subjects in processes of their own: the worker of the built-in harness, programs that are no
//! good, and the example in Python.
#![cfg(target_os = "linux")]

mod hostile;
mod pool;
mod python;
mod support;
mod worker;
