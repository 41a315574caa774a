//! SIGTERM to one process, not to its group: what a supervisor does that knows only the process.

#[cfg(target_os = "linux")]
pub(super) use linux::Handle;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Handle;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;

    use dsh_harness::subprocess::ProcessControl;
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    /// Names the process itself, so that a process that got its id later is never hit.
    #[derive(Debug)]
    pub(in crate::raw) struct Handle(Option<OwnedFd>);

    impl Handle {
        pub(in crate::raw) fn of(control: &dyn ProcessControl) -> Self {
            let pid = i32::try_from(control.pid()).ok();
            let opened = pid
                .and_then(rustix::process::Pid::from_raw)
                .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            // One that has ended by now may have handed on its id before it was opened.
            Self(opened.filter(|_| control.exited().is_none()))
        }

        /// Does nothing to a process that is gone.
        pub(in crate::raw) fn terminate(&self) {
            if let Some(handle) = &self.0 {
                let _gone = pidfd_send_signal(handle, Signal::TERM);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use dsh_harness::subprocess::ProcessControl;

    /// The process's id, where the system has signals.
    #[derive(Debug)]
    pub(in crate::raw) struct Handle(u32);

    impl Handle {
        pub(in crate::raw) fn of(control: &dyn ProcessControl) -> Self {
            Self(control.pid())
        }

        #[cfg(unix)]
        pub(in crate::raw) fn terminate(&self) {
            let pid = i32::try_from(self.0).ok();
            if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }

        #[cfg(not(unix))]
        pub(in crate::raw) fn terminate(&self) {
            let _without_signals = self.0;
        }
    }
}
