//! What the system has too little of.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// An error of the system, with the way out where open files are what there are too few of.
pub(crate) fn advised(error: &io::Error) -> String {
    let code = error.raw_os_error();
    if ![Errno::MFILE, Errno::NFILE]
        .map(|code| Some(code.raw_os_error()))
        .contains(&code)
    {
        return error.to_string();
    }
    let limit = match getrlimit(Resource::Nofile).current {
        Some(limit) => format!("this process may have {limit} files open"),
        None => "the system has no more of them".to_owned(),
    };
    format!("{error}: {limit}; raise that (`ulimit -n`), or run fewer at a time (`--jobs`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_name_the_limit_and_the_way_out() {
        let told = advised(&io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        assert!(
            told.contains(" files open; raise that (`ulimit -n`)"),
            "{told}"
        );
        assert!(told.contains("`--jobs`"), "{told}");
        let other = io::Error::from_raw_os_error(Errno::ACCESS.raw_os_error());
        assert_eq!(advised(&other), other.to_string());
    }
}
