use super::*;
use crate::config::Home;

fn settings() -> Settings {
    Settings {
        home: Some(Home {
            dir: "/home/.dsh".into(),
            shown: "~/.dsh",
        }),
        markers: vec![".git".to_owned(), "ROOT".to_owned()],
        base: vec!["A".to_owned(), "B".to_owned()],
        local: vec!["L".to_owned()],
        max_bytes: Some(1000),
        max_source_bytes: 1000,
    }
}

fn shown(scopes: &[Scope]) -> Vec<&str> {
    scopes.iter().map(|scope| scope.shown.as_str()).collect()
}

/// INS-1: broad to specific, base names before overlays.
#[test]
fn the_chain_goes_from_the_users_file_to_the_working_directory() {
    let layout = Layout::new(&settings(), Path::new("/p/a/b"), Path::new("/p"));
    assert_eq!(
        shown(&layout.chain),
        [
            "~/.dsh/AGENTS.md",
            "A",
            "B",
            "L",
            "a/A",
            "a/B",
            "a/L",
            "a/b/A",
            "a/b/B",
            "a/b/L"
        ]
    );
    assert_eq!(layout.chain[1].key(), "./A");
    assert_eq!(layout.chain[1].area, ".");
    assert_eq!(layout.chain[4].key(), "a/A");
    assert_eq!(layout.chain[4].area, "a");
    assert_eq!(layout.chain[0].key(), "~/.dsh/AGENTS.md");
    assert_eq!(layout.chain[4].path, Path::new("/p/a/A"));
    let sorted = in_order(layout.chain.clone());
    assert_eq!(sorted, layout.chain);
}

/// INS-3: a path that is reached twice is there once, at its first place.
#[test]
fn no_path_is_there_twice() {
    let mut settings = settings();
    settings.home = Some(Home {
        dir: "/p".into(),
        shown: "$DSH_HOME",
    });
    settings.base = ["AGENTS.md", "A", "A"].map(str::to_owned).into();
    settings.local = vec!["A".to_owned()];
    let layout = Layout::new(&settings, Path::new("/p"), Path::new("/p"));
    assert_eq!(shown(&layout.chain), ["$DSH_HOME/AGENTS.md", "A"]);
}

fn root_of(cwd: &str, found: &[(&str, Marker)]) -> PathBuf {
    let markers: Vec<_> = marker_paths(&settings(), Path::new(cwd))
        .iter()
        .map(|path| {
            let path = path.to_str().unwrap();
            let known = found.iter().find(|(own, _)| *own == path);
            known.map_or(Marker::NotThere, |(_, marker)| *marker)
        })
        .collect();
    laid_out(&settings(), Path::new(cwd), &markers, None).root
}

/// INS-1: the nearest ancestor with any marker, the working directory itself without one.
#[test]
fn the_root_is_the_nearest_ancestor_with_a_marker() {
    assert_eq!(root_of("/p/a/b", &[]), Path::new("/p/a/b"));
    assert_eq!(
        root_of("/p/a/b", &[("/p/.git", Marker::Found)]),
        Path::new("/p")
    );
    assert_eq!(
        root_of("/p/a/b", &[("/p/a/b/ROOT", Marker::Found)]),
        Path::new("/p/a/b")
    );
    let both = [("/p/.git", Marker::Found), ("/p/a/ROOT", Marker::Found)];
    assert_eq!(root_of("/p/a/b", &both), Path::new("/p/a"));
    assert_eq!(root_of("/", &[("/.git", Marker::Found)]), Path::new("/"));
    let mut none = settings();
    none.markers.clear();
    assert!(marker_paths(&none, Path::new("/p")).is_empty());
    assert_eq!(
        laid_out(&none, Path::new("/p"), &[], None).root,
        Path::new("/p")
    );
}

/// INS-9: a marker that cannot be looked at for a moment moves no root.
#[test]
fn a_root_that_was_known_stays_while_its_marker_cannot_be_looked_at() {
    let (settings, cwd) = (settings(), Path::new("/p/a"));
    let before = Layout::new(&settings, cwd, Path::new("/p"));
    let unknown = vec![Marker::Unknown; marker_paths(&settings, cwd).len()];
    let kept = laid_out(&settings, cwd, &unknown, Some(&before.fingerprint));
    assert_eq!(kept.root, Path::new("/p"));
    assert_eq!(laid_out(&settings, cwd, &unknown, None).root, cwd);
}

/// INS-5: the directories between, the file's own included, and nothing outside.
#[test]
fn a_touch_reaches_the_directories_between() {
    let layout = Layout::new(&settings(), Path::new("/p/a"), Path::new("/p"));
    let below = |file: &str| -> Vec<String> {
        let scopes = layout.below(Path::new(file));
        scopes.into_iter().map(|scope| scope.shown).collect()
    };
    assert_eq!(
        below("/p/a/b/c/x.rs"),
        ["a/b/A", "a/b/B", "a/b/L", "a/b/c/A", "a/b/c/B", "a/b/c/L"]
    );
    assert!(below("/p/a/x.rs").is_empty());
    assert!(layout.is_inside(Path::new("/p/a/x.rs")));
    for outside in ["/p/x.rs", "/p/b/x.rs", "/p/ab/x.rs", "/x.rs", "/"] {
        assert!(below(outside).is_empty(), "{outside}");
        assert!(!layout.is_inside(Path::new(outside)), "{outside}");
    }
}

/// INS-15: what was loaded has a place as long as the configuration gives it one.
#[test]
fn a_loaded_path_finds_its_scope_again() {
    let layout = Layout::new(&settings(), Path::new("/p/a"), Path::new("/p"));
    let at = |path: &str| layout.scope_at(Path::new(path)).map(|scope| scope.shown);
    assert_eq!(at("/p/B").as_deref(), Some("B"));
    assert_eq!(at("/p/a/b/L").as_deref(), Some("a/b/L"));
    assert_eq!(
        at("/home/.dsh/AGENTS.md").as_deref(),
        Some("~/.dsh/AGENTS.md")
    );
    for stray in ["/p/C", "/p/b/A", "/home/.dsh/A", "/p/a/b/C", "/"] {
        assert_eq!(at(stray), None, "{stray}");
    }
}

/// INS-15: everything that a whole baseline is due for shows in the fingerprint.
#[test]
fn the_fingerprint_tells_layouts_apart() {
    let base = settings();
    let of =
        |settings: &Settings| Layout::new(settings, Path::new("/p/a"), Path::new("/p")).fingerprint;
    let mut all = vec![
        of(&base),
        Layout::new(&base, Path::new("/p/b"), Path::new("/p")).fingerprint,
        Layout::new(&base, Path::new("/p/a"), Path::new("/p/a")).fingerprint,
    ];
    let changes: [fn(&mut Settings); 6] = [
        |settings| settings.home = None,
        |settings| settings.base.swap(0, 1),
        |settings| drop(settings.base.pop()),
        |settings| settings.local.clear(),
        |settings| {
            settings.local.clear();
            settings.base.push("L".to_owned());
        },
        |settings| settings.max_bytes = Some(1001),
    ];
    for change in changes {
        let mut settings = base.clone();
        change(&mut settings);
        all.push(of(&settings));
    }
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    let again = Layout::new(&base, Path::new("/p/a"), Path::new("/p"));
    assert_eq!(again.fingerprint, all[0]);
}

#[test]
fn the_working_directory_is_taken_by_its_letters() {
    assert_eq!(working_directory("/p/./a//b/../c/"), Some("/p/a/c".into()));
    assert_eq!(working_directory("p/a"), None);
    assert_eq!(working_directory(""), None);
}
