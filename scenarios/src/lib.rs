//! Clauses as data, scenario format, subjects, runner, monitors.
