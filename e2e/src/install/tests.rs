//! Finding and installing on machines whose programs are the scripts of `fixtures/machine`.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::catalogue::Entry;

const NPM: &str = "{kind: npm, package: foo-server, version: 1.2.3, node: 18, with: {bar: 4.5.6}}";
const PYPI: &str = "{kind: pypi, package: foo-server, version: 1.2.3}";
const JAVA: &str = "{kind: pypi, package: foo-server, version: 1.2.3, java: 21}";
const CARGO: &str = "{kind: cargo, package: foo, version: 1.2.3, minutes: 20, long: true, \
                     variables: {RELEASE: 1.2.3}}";
const RUSTUP: &str = "{kind: rustup-component, component: foo}";
const SYSTEM: &str = "{kind: system-package, apt: [foo-server]}";
const PATH: &str = "{kind: path}";
const NODE: [(&str, &str); 2] = [("node", "node-20"), ("npm", "npm-installs")];

/// No test waits longer for anything that has to happen.
const PATIENCE: Duration = Duration::from_mins(1);

fn entry(recipes: &[&str]) -> Entry {
    let recipes = recipes
        .iter()
        .map(|recipe| format!("  - {recipe}"))
        .collect::<Vec<_>>()
        .join(
            "
",
        );
    let text = format!(
        "name: foo-server\nlanguage: Foo\nsummary: A server\nlaunch: {{command: foo-server, args: [--stdio]}}\n\
         version: {{args: [--version], after: foo-server}}\nextensions: {{.foo: foo}}\nsample: foo\n\
         recipes:\n{recipes}"
    );
    Entry::parse("foo-server.yaml", &text).unwrap()
}

/// A machine with nothing on it but the tools of a shell and what a test puts there.
struct Bench {
    folder: tempfile::TempDir,
    installer: Installer,
}

fn fixture(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/machine")
        .join(name);
    assert!(path.is_file(), "{name}");
    path
}

/// Copies a program in a process of its own: what is open for writing here may be inherited by what
/// another test starts just now, and a program that is open for writing cannot be started.
fn copy(program: &str, to: &std::path::Path) {
    let copied = std::process::Command::new("cp")
        .arg(fixture(program))
        .arg(to)
        .status();
    assert!(copied.unwrap().success());
}

impl Bench {
    /// `programs`: (name on PATH, fixture).
    fn new(programs: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (early, bin, system, tools) = (
            bench("early"),
            bench("bin"),
            bench("system"),
            bench("tools"),
        );
        for tool in ["sh", "cat", "mkdir", "chmod", "ln", "tail", "mkfifo"] {
            let real = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(tool));
            let real = real.iter().find(|path| path.exists()).unwrap();
            std::os::unix::fs::symlink(real, tools.join(tool)).unwrap();
        }
        let path = std::env::join_paths([&early, &bin, &system, &tools]).unwrap();
        let variables = BTreeMap::from([
            ("PATH".into(), path),
            ("COMPONENTS".into(), bench("components").into()),
            ("SYSTEM".into(), system.into()),
            ("SERVER".into(), fixture("server-works").into()),
        ]);
        let machine = Machine {
            variables,
            platform: Platform::Linux,
            privileged: false,
        };
        let installer = Installer::new(machine, folder.path().join("cache"));
        let bench = Self { folder, installer };
        for (name, fixture) in programs {
            bench.put("bin", name, fixture);
        }
        bench
    }

    fn put(&self, folder: &str, name: &str, program: &str) {
        let link = self.path(folder).join(name);
        std::os::unix::fs::symlink(fixture(program), link).unwrap();
    }

    fn take(&self, name: &str) {
        std::fs::remove_file(self.path("bin").join(name)).unwrap();
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// The folder of the only installation of foo-server, finished or not.
    fn slot(&self) -> PathBuf {
        let mut folders = cache::installations(self.installer.cache(), "foo-server").unwrap();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    fn nothing_is_in_the_cache(&self) -> bool {
        cache::installations(self.installer.cache(), "foo-server")
            .unwrap()
            .is_empty()
    }

    async fn locate(&self, entry: &Entry) -> Result<Located, LocateError> {
        in_time(self.installer.locate(entry, &CancellationToken::new())).await
    }

    async fn install(&self, entry: &Entry) -> Result<Located, InstallError> {
        self.install_with(entry, InstallOptions::default(), &Log::default())
            .await
    }

    async fn install_with(
        &self,
        entry: &Entry,
        options: InstallOptions,
        log: &Log,
    ) -> Result<Located, InstallError> {
        let report = |progress: &Progress<'_>| log.note(progress);
        let cancel = CancellationToken::new();
        in_time(
            self.installer
                .install(entry, options, Reporter::new(&report), &cancel),
        )
        .await
    }

    #[track_caller]
    fn failure(&self, result: Result<Located, InstallError>) -> String {
        let text = result.unwrap_err().to_string();
        text.replace(self.folder.path().to_str().unwrap(), "TMP")
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("it happens within the patience of a test")
}

/// What was reported, and an event for more of it.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    more: Notify,
}

impl Log {
    fn note(&self, progress: &Progress<'_>) {
        self.lines.lock().unwrap().push(progress.to_string());
        self.more.notify_waiters();
    }

    fn has(&self, wanted: &str) -> bool {
        self.lines
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(wanted))
    }

    async fn wait_for(&self, wanted: &str) {
        in_time(async {
            loop {
                let more = self.more.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                if self.has(wanted) {
                    return;
                }
                more.await;
            }
        })
        .await;
    }
}

/// Ends when nobody holds the writing side of the pipe any more.
async fn until_let_go(mut pipe: pipe::Receiver) {
    assert_eq!(in_time(pipe.read_to_end(&mut Vec::new())).await.unwrap(), 0);
}

#[tokio::test]
async fn the_first_program_on_path_that_tells_its_version_is_taken() {
    let bench = Bench::new(&[("foo-server", "server-works")]);
    bench.put("early", "foo-server", "server-fails");
    let located = bench.locate(&entry(&[NPM])).await.unwrap();
    assert_eq!(located.command, bench.path("bin/foo-server"));
    assert_eq!(located.args, ["--stdio"]);
    assert_eq!(located.version, "2.0.0");
    assert_eq!(located.origin, Origin::Path);
    let [rejected] = &located.rejected[..] else {
        panic!("{:?}", located.rejected)
    };
    assert_eq!(rejected.path, bench.path("early/foo-server"));
    assert_eq!(
        rejected.reason,
        "`foo-server --version` failed (exit status: 127): env: node: No such file or directory"
    );
}

#[tokio::test]
async fn a_server_that_is_nowhere_is_absent_with_the_way_out() {
    let bench = Bench::new(&[]);
    assert_eq!(
        bench.locate(&entry(&[NPM])).await.unwrap_err().to_string(),
        "foo-server is not here: there is no program of its name on PATH or in the cache\n\
         to install it: dsh-conform servers install foo-server"
    );
}

#[tokio::test]
async fn the_proxy_of_rustup_without_the_component_is_said_to_be_one() {
    let bench = Bench::new(&[
        ("rustup", "rustup-with-proxies"),
        ("foo-server", "rustup-with-proxies"),
    ]);
    let Err(LocateError::Absent { rejected, .. }) = bench.locate(&entry(&[RUSTUP])).await else {
        panic!("the proxy counts as the server")
    };
    assert_eq!(
        rejected[0].reason,
        "it is rustup's proxy, and the foo component is not installed (it says: error: Unknown \
         binary 'foo-server' in official toolchain 'stable')"
    );
    bench.put("system", "foo-server", "server-works");
    let located = bench.locate(&entry(&[RUSTUP])).await.unwrap();
    assert_eq!(located.command, bench.path("system/foo-server"));
    assert_eq!(located.rejected, rejected);
}

#[tokio::test]
async fn the_proxy_of_rustup_that_passes_on_gives_way_to_what_it_passes_on_to() {
    let bench = Bench::new(&[
        ("rustup", "rustup-with-proxies"),
        ("foo-server", "rustup-with-proxies"),
    ]);
    std::fs::write(bench.path("components/falls-back"), "").unwrap();
    bench.put("system", "foo-server", "server-works");
    let located = bench.locate(&entry(&[RUSTUP])).await.unwrap();
    assert_eq!(located.command, bench.path("system/foo-server"));
    let reason = &located.rejected[0].reason;
    assert!(
        reason.starts_with("it is rustup's proxy, and the foo component is not installed"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_program_that_never_tells_its_version_is_ended_and_absent() {
    let mut bench = Bench::new(&[("foo-server", "server-never-answers")]);
    bench.installer.probe_limit = Duration::from_millis(50);
    let Err(LocateError::Absent { rejected, .. }) = bench.locate(&entry(&[NPM])).await else {
        panic!("it told its version")
    };
    assert_eq!(
        rejected[0].reason,
        "`foo-server --version` gave no answer within 0 s"
    );
}

#[tokio::test]
async fn a_program_that_tells_something_else_counts_without_a_version() {
    let bench = Bench::new(&[("foo-server", "server-without-version")]);
    assert_eq!(
        bench.locate(&entry(&[NPM])).await.unwrap().version,
        "unknown"
    );
}

#[tokio::test]
async fn a_server_that_need_not_tell_its_version_counts_whatever_it_does() {
    let limit = Duration::from_millis(50);
    for (program, reason) in [
        ("server-fails", "failed (exit status: 127): env: node"),
        ("server-never-answers", "gave no answer within 0 s"),
    ] {
        let mut bench = Bench::new(&[("foo-server", program)]);
        bench.installer.probe_limit = limit;
        let mut wanted = entry(&[PATH]);
        wanted.version.optional = true;
        let located = bench.locate(&wanted).await.unwrap();
        assert_eq!(located.version, "unknown");
        let remarks = located.remarks().join("\n");
        assert!(remarks.contains(reason), "{remarks}");
        assert!(
            remarks.contains("`version = {optional = true}`"),
            "{remarks}"
        );
        // With nothing to ask it is not started, and there is nothing to remark.
        wanted.version.args.clear();
        let located = bench.locate(&wanted).await.unwrap();
        assert_eq!(
            (located.version.as_str(), located.remarks().len()),
            ("unknown", 0)
        );
    }
    // What is no program at all is none.
    let bench = Bench::new(&[]);
    let mut wanted = entry(&[PATH]);
    wanted.version.optional = true;
    let told = bench.locate(&wanted).await.unwrap_err().to_string();
    assert!(
        told.ends_with(
            "put foo-server on PATH, or give its entry a recipe that installs it here: it has none"
        ),
        "{told}"
    );
    let diagnosis = in_time(bench.installer.doctor(&wanted, &CancellationToken::new())).await;
    let advice = diagnosis.unwrap().advice.unwrap();
    assert!(
        advice
            .before()
            .starts_with(", put foo-server on PATH, or give"),
        "{advice:?}"
    );
}

#[tokio::test]
async fn a_program_without_a_version_has_that_of_the_package_it_is_a_file_of() {
    for (query, version) in [
        ("dpkg-query-knows", "0.5.0+ds-1"),
        ("dpkg-query-knows-nothing", "unknown"),
        ("server-fails", "unknown"),
    ] {
        let bench = Bench::new(&[
            ("foo-server", "server-without-version"),
            ("dpkg-query", query),
        ]);
        assert_eq!(bench.locate(&entry(&[NPM])).await.unwrap().version, version);
    }
    let bench = Bench::new(&[
        ("foo-server", "server-works"),
        ("dpkg-query", "dpkg-query-knows"),
    ]);
    let told = bench.locate(&entry(&[NPM])).await.unwrap().version;
    assert_eq!(told, "2.0.0", "it tells its own");
}

#[tokio::test]
async fn another_program_of_the_package_can_tell_the_version() {
    let bench = Bench::new(&[("foo-server", "server-fails"), ("foo", "server-works")]);
    let mut entry = entry(&[NPM]);
    entry.version.command = Some("foo".to_owned());
    assert_eq!(bench.locate(&entry).await.unwrap().version, "2.0.0");
    bench.take("foo");
    let error = bench.locate(&entry).await.unwrap_err().to_string();
    assert!(error.contains("there is no program "), "{error}");
}

#[tokio::test]
async fn a_package_can_tell_the_version_without_being_started() {
    let bench = Bench::new(&NODE);
    let mut entry = entry(&[PATH, NPM]);
    entry.version = serde_json::from_value(serde_json::json!({"package": "foo"})).unwrap();
    let error = bench.install(&entry).await.unwrap_err().to_string();
    assert!(
        error.contains("it belongs to no npm package foo"),
        "{error}"
    );
    let global = bench.path("lib/node_modules/foo");
    std::fs::create_dir_all(&global).unwrap();
    let manifest = r#"{"name": "foo", "version": "3.1.0"}"#;
    std::fs::write(global.join("package.json"), manifest).unwrap();
    copy("server-fails", &global.join("cli.js"));
    std::os::unix::fs::symlink(global.join("cli.js"), bench.path("bin/foo-server")).unwrap();
    assert_eq!(bench.locate(&entry).await.unwrap().version, "3.1.0");
}

#[tokio::test]
async fn the_folder_of_the_installation_is_filled_in_wherever_it_is_named() {
    let bench = Bench::new(&NODE);
    let mut entry = entry(&[PATH, NPM]);
    let settings = serde_json::json!({"tsdk": "${install}/node_modules/typescript/lib"});
    entry.launch.args = vec!["--at=${install}".to_owned()];
    entry.initialization_options = settings.clone();
    entry.configuration = settings.clone();
    entry.remedies = vec![crate::catalogue::EntryRemedy {
        against: "QUA-4".to_owned(),
        initialization_options: settings,
        args: vec!["--also=${install}".to_owned()],
        ..Default::default()
    }];
    bench.put("early", "foo-server", "server-works");
    let located = bench.install(&entry).await.unwrap();
    let slot = bench.slot().display().to_string();
    assert_eq!(located.args, [format!("--at={slot}")]);
    let filled = serde_json::json!({"tsdk": format!("{slot}/node_modules/typescript/lib")});
    assert_eq!(located.initialization_options, filled);
    assert_eq!(located.configuration, filled);
    assert_eq!(located.remedies[0].initialization_options, filled);
    assert_eq!(located.remedies[0].args, [format!("--also={slot}")]);
    let reason = &located.rejected[0].reason;
    assert!(
        reason.contains("the folder whose node_modules it is in"),
        "{reason}"
    );
    // One of npm's own folder is as good as one of the cache.
    let modules = bench.path("lib/node_modules/foo");
    std::fs::create_dir_all(&modules).unwrap();
    copy("server-works", &modules.join("cli.js"));
    std::os::unix::fs::symlink(modules.join("cli.js"), bench.path("tools/foo-server")).unwrap();
    let located = bench.locate(&entry).await.unwrap();
    let lib = bench.path("lib").canonicalize().unwrap();
    assert_eq!(located.args, [format!("--at={}", lib.display())]);
}

#[tokio::test]
async fn packages_that_are_replaced_are_written_into_the_manifest() {
    let bench = Bench::new(&NODE);
    let entry = entry(&[
        "{kind: npm, package: foo-server, version: 1.2.3, node: 18, overrides: {bar: 4.5.6}}",
    ]);
    bench.install(&entry).await.unwrap();
    let manifest = std::fs::read_to_string(bench.slot().join("package.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let expected = serde_json::json!({"private": true, "overrides": {"bar": "4.5.6"}});
    assert_eq!(manifest, expected);
}

#[tokio::test]
async fn folders_files_without_permission_and_relative_segments_are_no_candidates() {
    let mut bench = Bench::new(&[("foo-server", "server-works")]);
    std::fs::create_dir(bench.path("early/foo-server")).unwrap();
    std::fs::write(bench.path("system/foo-server"), "").unwrap();
    std::fs::create_dir(bench.path("by-relative-path")).unwrap();
    bench.put("by-relative-path", "foo-server", "server-works");
    let path = bench.installer.machine.variables[&OsString::from("PATH")].clone();
    let up = PathBuf::from("../".repeat(50));
    let relative = up.join(bench.path("by-relative-path").strip_prefix("/").unwrap());
    assert!(relative.join("foo-server").exists());
    let mut longer = OsString::from(":");
    longer.push(relative);
    longer.push("::");
    longer.push(&path);
    bench
        .installer
        .machine
        .variables
        .insert("PATH".into(), longer);
    let (wanted, cancel) = (entry(&[NPM]), CancellationToken::new());
    let candidates = in_time(bench.installer.candidates(&wanted, &cancel))
        .await
        .unwrap();
    assert_eq!(candidates.len(), 1, "{candidates:?}");
}

#[tokio::test]
async fn npm_packages_are_installed_with_exact_pins_and_no_scripts() {
    let bench = Bench::new(&NODE);
    let log = Log::default();
    let located = bench
        .install_with(&entry(&[NPM]), InstallOptions::default(), &log)
        .await;
    let located = located.unwrap();
    let slot = bench.slot();
    assert_eq!(located.command, slot.join("node_modules/.bin/foo-server"));
    assert_eq!(
        (located.version.as_str(), &located.args[..]),
        ("1.2.3", &["--stdio".to_owned()][..])
    );
    let pin = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    let packages = vec![pin("foo-server", "1.2.3"), pin("bar", "4.5.6")];
    let origin = Origin::Cache {
        recipe: RecipeKind::Npm,
        folder: slot.clone(),
        packages,
    };
    assert_eq!(
        located.origin.to_string(),
        "cache, from npm foo-server 1.2.3 bar 4.5.6"
    );
    assert_eq!(located.origin, origin);
    let asked = std::fs::read_to_string(slot.join("asked")).unwrap();
    assert!(asked.ends_with(" foo-server@1.2.3 bar@4.5.6\n"), "{asked}");
    assert!(asked.contains("--ignore-scripts"), "{asked}");
    assert!(log.has("  added 1 package"));
}

#[tokio::test]
async fn what_is_installed_is_found_and_not_installed_again() {
    let bench = Bench::new(&NODE);
    let installed = bench.install(&entry(&[NPM])).await.unwrap();
    assert_eq!(bench.locate(&entry(&[NPM])).await.unwrap(), installed);
    let log = Log::default();
    let again = bench
        .install_with(&entry(&[NPM]), InstallOptions::default(), &log)
        .await;
    assert_eq!(again.unwrap(), installed);
    assert!(log.lines.lock().unwrap().is_empty());
    // Another version of the recipe is another installation.
    let newer = entry(&[&NPM.replace("bar: 4.5.6", "bar: 4.5.7")]);
    assert!(bench.locate(&newer).await.is_err());
}

#[tokio::test]
async fn a_program_on_path_goes_before_the_cache_when_looking_and_not_when_installing() {
    let bench = Bench::new(&NODE);
    let installed = bench.install(&entry(&[NPM])).await.unwrap();
    bench.put("early", "foo-server", "server-works");
    assert_eq!(
        bench.locate(&entry(&[NPM])).await.unwrap().origin,
        Origin::Path
    );
    assert_eq!(bench.install(&entry(&[NPM])).await.unwrap(), installed);
    assert_eq!(
        bench.install(&entry(&[PATH, NPM])).await.unwrap().origin,
        Origin::Path
    );
}

#[tokio::test]
async fn missing_and_old_runtimes_are_named() {
    let missing = Bench::new(&[("node", "node-20")]);
    let failure = missing.failure(missing.install(&entry(&[NPM])).await);
    assert_eq!(
        failure,
        "foo-server could not be installed\n\
         \u{20} npm: npm is not on PATH: install Node.js 18 or newer\n\
         what is missing here: dsh-conform servers doctor foo-server"
    );
    let old = Bench::new(&[("node", "node-16"), ("npm", "npm-installs")]);
    let failure = old.failure(old.install(&entry(&[NPM])).await);
    assert!(
        failure.contains("this is Node.js 16.20.1, and Node.js 18 or newer is needed"),
        "{failure}"
    );
    let no_python = Bench::new(&[]);
    let failure = no_python.failure(no_python.install(&entry(&[PYPI])).await);
    assert!(
        failure.contains("python3 is not on PATH: install Python 3"),
        "{failure}"
    );
    assert!(no_python.nothing_is_in_the_cache() && old.nothing_is_in_the_cache());
}

#[tokio::test]
async fn a_server_that_needs_java_is_installed_where_a_new_one_is() {
    let python = ("python3", "python3-works");
    let missing = Bench::new(&[python]);
    let failure = missing.failure(missing.install(&entry(&[JAVA])).await);
    assert!(
        failure.contains("java is not on PATH: install a JDK of version 21 or newer"),
        "{failure}"
    );
    let old = Bench::new(&[python, ("java", "java-17")]);
    let failure = old.failure(old.install(&entry(&[JAVA])).await);
    assert!(
        failure.contains("this is Java 17.0.15, and Java 21 or newer is needed"),
        "{failure}"
    );
    assert!(missing.nothing_is_in_the_cache() && old.nothing_is_in_the_cache());
    let states = |diagnosis: Diagnosis| {
        let java = diagnosis.tools.into_iter().find(|tool| tool.name == "java");
        java.map(|tool| tool.state)
    };
    assert_eq!(
        states(diagnose(&old, &[JAVA]).await),
        Some(Err(
            "version 17.0.15 is too old: 21 or newer is needed".to_owned()
        ))
    );
    assert_eq!(states(diagnose(&old, &[PYPI]).await), None);
    let new = Bench::new(&[python, ("java", "java-21")]);
    assert_eq!(
        states(diagnose(&new, &[JAVA]).await),
        Some(Ok("21.0.8".to_owned()))
    );
    assert_eq!(new.install(&entry(&[JAVA])).await.unwrap().version, "1.2.3");
    // What is in the cache does not count any longer once that Java is gone.
    new.take("java");
    let absent = new.locate(&entry(&[JAVA])).await.unwrap_err().to_string();
    assert!(
        absent.contains("needs Java 21 or newer, and java is not on PATH"),
        "{absent}"
    );
    new.put("bin", "java", "java-17");
    let absent = new.locate(&entry(&[JAVA])).await.unwrap_err().to_string();
    assert!(
        absent.contains("it needs Java 21 or newer, and this is Java 17.0.15"),
        "{absent}"
    );
}

#[tokio::test]
async fn an_installer_that_fails_halfway_leaves_its_last_words_and_nothing_else() {
    let bench = Bench::new(&[("node", "node-20"), ("npm", "npm-stops-halfway")]);
    let failure = bench.failure(bench.install(&entry(&[NPM])).await);
    assert!(
        failure.contains("` failed (exit status: 7): it failed; see its output"),
        "{failure}"
    );
    assert!(
        failure.contains("\n    | fetching\n    | npm error something odd\n"),
        "{failure}"
    );
    assert!(bench.nothing_is_in_the_cache());
    // A second attempt with a better npm is not disturbed by the first.
    bench.take("npm");
    bench.put("bin", "npm", "npm-installs");
    assert!(bench.install(&entry(&[NPM])).await.is_ok());
}

#[tokio::test]
async fn a_full_disk_and_a_missing_network_are_said_plainly() {
    let full = Bench::new(&[("node", "node-20"), ("npm", "npm-fills-disk")]);
    let failure = full.failure(full.install(&entry(&[NPM])).await);
    let plainly =
        "the disk is full; free some space, or choose another cache folder with DSH_CONFORM_CACHE";
    assert!(failure.contains(plainly), "{failure}");
    let cut_off = Bench::new(&[("node", "node-20"), ("npm", "npm-without-network")]);
    let failure = cut_off.failure(cut_off.install(&entry(&[NPM])).await);
    assert!(
        failure.contains("the registry could not be reached; check the network"),
        "{failure}"
    );
}

#[tokio::test]
async fn what_is_installed_and_does_not_start_does_not_count() {
    let bench = Bench::new(&[("node", "node-20"), ("npm", "npm-installs-broken")]);
    let failure = bench.failure(bench.install(&entry(&[NPM])).await);
    assert!(
        failure.contains("it is installed and does not work: "),
        "{failure}"
    );
    assert!(
        failure.contains("Error: Cannot find module foo"),
        "{failure}"
    );
    assert!(bench.nothing_is_in_the_cache());
}

#[tokio::test]
async fn an_installation_that_stopped_working_is_renewed() {
    let bench = Bench::new(&NODE);
    bench.install(&entry(&[NPM])).await.unwrap();
    let server = bench.slot().join("node_modules/.bin/foo-server");
    std::fs::remove_file(&server).unwrap();
    let Err(LocateError::Absent { rejected, .. }) = bench.locate(&entry(&[NPM])).await else {
        panic!("a missing program counts")
    };
    assert_eq!(rejected[0].path, server);
    let log = Log::default();
    let located = bench
        .install_with(&entry(&[NPM]), InstallOptions::default(), &log)
        .await;
    assert_eq!(located.unwrap().command, server);
    assert!(log.has("installing again: "));
}

#[tokio::test]
async fn what_was_interrupted_without_warning_does_not_count_and_is_cleared_away() {
    let bench = Bench::new(&NODE);
    bench.install(&entry(&[NPM])).await.unwrap();
    let slot = bench.slot();
    std::fs::remove_file(slot.join("installed.json")).unwrap();
    std::fs::write(slot.join("half"), "").unwrap();
    assert!(bench.locate(&entry(&[NPM])).await.is_err());
    assert_eq!(
        diagnose(&bench, &[NPM]).await.leftovers,
        std::slice::from_ref(&slot)
    );
    bench.install(&entry(&[NPM])).await.unwrap();
    assert!(!slot.join("half").exists());
}

#[tokio::test]
async fn interrupting_ends_the_whole_group_and_clears_away() {
    let bench = Bench::new(&[("node", "node-20"), ("npm", "npm-with-deaf-helper")]);
    let log = Log::default();
    let cancel = CancellationToken::new();
    let report = |progress: &Progress<'_>| log.note(progress);
    let entry = entry(&[NPM, PATH]);
    let install = bench.installer.install(
        &entry,
        InstallOptions::default(),
        Reporter::new(&report),
        &cancel,
    );
    let interrupt = async {
        let pipe = pipe_of(&bench, &log).await;
        cancel.cancel();
        pipe
    };
    let (installed, pipe) = in_time(async { tokio::join!(install, interrupt) }).await;
    assert!(
        matches!(installed, Err(InstallError::Cancelled)),
        "{installed:?}"
    );
    until_let_go(pipe).await;
    assert!(bench.nothing_is_in_the_cache());
}

#[tokio::test]
async fn dropping_an_installation_ends_the_whole_group() {
    let bench = Bench::new(&[("node", "node-20"), ("npm", "npm-with-deaf-helper")]);
    let log = Arc::new(Log::default());
    let mut tasks = tokio::task::JoinSet::new();
    let installer = bench.installer.clone();
    let noted = Arc::clone(&log);
    tasks.spawn(async move {
        let report = |progress: &Progress<'_>| noted.note(progress);
        let reporter = Reporter::new(&report);
        let cancel = CancellationToken::new();
        let (wanted, options) = (entry(&[NPM]), InstallOptions::default());
        installer
            .install(&wanted, options, reporter, &cancel)
            .await
            .map(drop)
    });
    let pipe = pipe_of(&bench, &log).await;
    tasks.shutdown().await;
    until_let_go(pipe).await;
}

/// The pipe "alive" of the npm that was started, once both npm and its helper hold it.
async fn pipe_of(bench: &Bench, log: &Log) -> pipe::Receiver {
    log.wait_for("  made").await;
    let path = bench.slot().join("alive");
    let mut pipe = pipe::OpenOptions::new().open_receiver(path).unwrap();
    let mut word = [0; "helper\n".len()];
    in_time(pipe.read_exact(&mut word)).await.unwrap();
    log.wait_for("  running").await;
    pipe
}

#[tokio::test]
async fn of_two_installations_at_once_one_installs_and_the_other_waits() {
    let bench = Bench::new(&[("node", "node-20"), ("npm", "npm-waits-for-release")]);
    let entry = entry(&[NPM]);
    let (first, second) = (Log::default(), Log::default());
    let installing = bench.install_with(&entry, InstallOptions::default(), &first);
    let waiting = async {
        first.wait_for("  ready").await;
        bench
            .install_with(&entry, InstallOptions::default(), &second)
            .await
    };
    let releasing = async {
        second
            .wait_for("waiting for another installation of foo-server to end")
            .await;
        let release = bench.slot().join("release");
        let write = move || {
            std::fs::File::options()
                .write(true)
                .open(release)?
                .write_all(b"go\n")
        };
        in_time(tokio::task::spawn_blocking(write))
            .await
            .unwrap()
            .unwrap();
    };
    let (first_located, second_located, ()) = tokio::join!(installing, waiting, releasing);
    assert_eq!(first_located.unwrap(), second_located.unwrap());
    assert!(!second.has("$ npm"), "the second installed too");
}

#[tokio::test]
async fn waiting_for_another_installation_can_be_interrupted() {
    let bench = Bench::new(&NODE);
    let cancel = CancellationToken::new();
    let _lock = Lock::acquire(bench.installer.cache(), "foo-server", || (), &cancel)
        .await
        .unwrap();
    let report = |progress: &Progress<'_>| {
        if matches!(progress, Progress::Waiting { .. }) {
            cancel.cancel();
        }
    };
    let entry = entry(&[NPM]);
    let install = bench.installer.install(
        &entry,
        InstallOptions::default(),
        Reporter::new(&report),
        &cancel,
    );
    assert!(matches!(
        in_time(install).await,
        Err(InstallError::Cancelled)
    ));
}

#[tokio::test]
async fn pypi_packages_are_installed_into_an_environment_of_their_own() {
    let bench = Bench::new(&[("python3", "python3-works")]);
    let located = bench.install(&entry(&[PYPI])).await.unwrap();
    assert_eq!(located.command, bench.slot().join("venv/bin/foo-server"));
    let asked = std::fs::read_to_string(bench.slot().join("asked")).unwrap();
    assert!(asked.ends_with(" foo-server==1.2.3\n"), "{asked}");
}

#[tokio::test]
async fn a_python_without_ensurepip_installs_with_the_pip_of_the_system() {
    let bench = Bench::new(&[("python3", "python3-without-ensurepip")]);
    let located = bench.install(&entry(&[PYPI])).await.unwrap();
    assert_eq!(located.version, "1.2.3");
    let asked = std::fs::read_to_string(bench.slot().join("asked")).unwrap();
    let python = bench.slot().join("venv/bin/python");
    assert!(
        asked.starts_with(&format!("-m pip --python {} install", python.display())),
        "{asked}"
    );
    let bench = Bench::new(&[("python3", "python3-without-pip")]);
    let failure = bench.failure(bench.install(&entry(&[PYPI])).await);
    assert!(
        failure.contains("on Debian: apt-get install python3-venv"),
        "{failure}"
    );
}

#[tokio::test]
async fn long_builds_are_started_only_where_they_may_be_and_are_announced() {
    let bench = Bench::new(&[("cargo", "cargo-builds")]);
    let failure = bench.failure(bench.install(&entry(&[CARGO])).await);
    assert!(
        failure.contains("about 20 minutes, which is not done unasked in a CI"),
        "{failure}"
    );
    let log = Log::default();
    let asked = InstallOptions {
        long_builds: true,
        ..InstallOptions::default()
    };
    let located = bench
        .install_with(&entry(&[CARGO]), asked, &log)
        .await
        .unwrap();
    assert_eq!(located.command, bench.slot().join("bin/foo-server"));
    assert_eq!(located.version, "1.2.3");
    assert!(log.has("building from source, about 20 minutes on two cores"));
    let asked = std::fs::read_to_string(bench.slot().join("asked")).unwrap();
    assert!(asked.starts_with("install --locked --root ") && asked.ends_with(" foo@1.2.3\n"));
    assert!(!bench.slot().join("build").exists());
    // It is in the cache now, so nothing is built any more, and a CI may have it.
    assert_eq!(bench.install(&entry(&[CARGO])).await.unwrap(), located);
}

#[tokio::test]
async fn an_interrupted_build_goes_on_where_it_stopped() {
    let bench = Bench::new(&[("cargo", "cargo-never-ends")]);
    let (log, cancel) = (Log::default(), CancellationToken::new());
    let patient = InstallOptions {
        long_builds: true,
        ..InstallOptions::default()
    };
    let report = |progress: &Progress<'_>| log.note(progress);
    let build = entry(&[CARGO]);
    let install = bench
        .installer
        .install(&build, patient, Reporter::new(&report), &cancel);
    let interrupt = async {
        log.wait_for("  building").await;
        cancel.cancel();
    };
    let (installed, ()) = in_time(async { tokio::join!(install, interrupt) }).await;
    assert!(
        matches!(installed, Err(InstallError::Cancelled)),
        "{installed:?}"
    );
    assert!(bench.locate(&build).await.is_err());
    assert!(bench.slot().join("build/half").exists());
    assert!(!bench.slot().join("bin").exists());
    bench.take("cargo");
    bench.put("bin", "cargo", "cargo-builds");
    let log = Log::default();
    bench.install_with(&build, patient, &log).await.unwrap();
    assert!(log.has("  going on"));
    assert!(!bench.slot().join("build").exists());
}

#[tokio::test]
async fn a_component_is_added_where_only_its_proxy_is() {
    let bench = Bench::new(&[
        ("rustup", "rustup-with-proxies"),
        ("foo-server", "rustup-with-proxies"),
    ]);
    let located = bench.install(&entry(&[PATH, RUSTUP, CARGO])).await.unwrap();
    assert_eq!(located.command, bench.path("bin/foo-server"));
    assert_eq!(located.version, "1.95.0");
    assert_eq!(located.rejected, [], "what works now is no longer rejected");
}

#[tokio::test]
async fn a_recipe_that_fails_is_followed_by_the_next() {
    let bench = Bench::new(&[
        ("rustup", "rustup-without-network"),
        ("foo-server", "rustup-without-network"),
        ("cargo", "cargo-builds"),
    ]);
    let log = Log::default();
    let patient = InstallOptions {
        long_builds: true,
        ..InstallOptions::default()
    };
    let located = bench
        .install_with(&entry(&[PATH, RUSTUP, SYSTEM, CARGO]), patient, &log)
        .await;
    let located = located.unwrap();
    assert_eq!(located.command, bench.slot().join("bin/foo-server"));
    assert!(
        log.has(
            "rustup-component: `rustup component add foo` failed (exit status: 1): the registry"
        )
    );
    assert!(log.has("system-package: apt-get is not on PATH: install foo-server"));
    assert_eq!(located.rejected.len(), 1, "{:?}", located.rejected);
}

#[tokio::test]
async fn a_compiler_that_is_too_old_is_said_plainly() {
    let bench = Bench::new(&[("cargo", "cargo-of-old-rust")]);
    let patient = InstallOptions {
        long_builds: true,
        ..InstallOptions::default()
    };
    let result = bench
        .install_with(&entry(&[CARGO]), patient, &Log::default())
        .await;
    let failure = bench.failure(result);
    assert!(
        failure.contains("it needs a newer runtime than is here"),
        "{failure}"
    );
    assert!(
        failure.contains("it requires rustc 1.95 or newer"),
        "{failure}"
    );
}

#[tokio::test]
async fn packages_of_the_system_are_printed_and_installed_only_when_asked_for_by_root() {
    let mut bench = Bench::new(&[("apt-get", "apt-get-installs")]);
    let wanted = entry(&[SYSTEM]);
    let failure = bench.failure(bench.install(&wanted).await);
    assert!(
        failure.contains("run `apt-get install foo-server`, or try again with --system"),
        "{failure}"
    );
    let system = InstallOptions {
        system: true,
        ..InstallOptions::default()
    };
    let failure = bench.failure(bench.install_with(&wanted, system, &Log::default()).await);
    assert!(
        failure.contains("only root may do that: run `sudo apt-get install foo-server`"),
        "{failure}"
    );
    assert!(!bench.path("system/asked").exists());
    bench.installer.machine.privileged = true;
    let located = bench
        .install_with(&wanted, system, &Log::default())
        .await
        .unwrap();
    assert_eq!(located.command, bench.path("system/foo-server"));
    assert_eq!(
        std::fs::read_to_string(bench.path("system/asked")).unwrap(),
        "noninteractive update --quiet\n\
         noninteractive install --yes --quiet --no-install-recommends foo-server\n"
    );
}

#[tokio::test]
async fn removing_takes_every_installation_and_says_which() {
    let bench = Bench::new(&NODE);
    let remove = async |entry: &Entry| {
        let cancel = CancellationToken::new();
        in_time(bench.installer.remove(entry, Reporter::silent(), &cancel))
            .await
            .unwrap()
    };
    assert!(remove(&entry(&[NPM])).await.is_empty());
    bench.install(&entry(&[NPM])).await.unwrap();
    let first = bench.slot();
    bench
        .install(&entry(&[&NPM.replace("1.2.3", "1.2.4")]))
        .await
        .unwrap();
    let removed = remove(&entry(&[NPM])).await;
    assert_eq!(removed.len(), 2);
    assert_eq!(removed[0], first);
    assert!(bench.nothing_is_in_the_cache());
    assert!(bench.locate(&entry(&[NPM])).await.is_err());
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_is_an_error_that_names_it() {
    let mut bench = Bench::new(&NODE);
    let file = bench.path("file");
    std::fs::write(&file, "").unwrap();
    bench.installer.cache = file.join("cache");
    let failure = bench.failure(bench.install(&entry(&[NPM])).await);
    assert!(
        failure.starts_with("cannot use the cache: TMP/file/cache/.locks"),
        "{failure}"
    );
}

#[tokio::test]
async fn an_installation_that_is_cancelled_already_starts_nothing() {
    let bench = Bench::new(&NODE);
    let (log, cancel) = (Log::default(), CancellationToken::new());
    cancel.cancel();
    let report = |progress: &Progress<'_>| log.note(progress);
    let (wanted, options) = (entry(&[NPM]), InstallOptions::default());
    let install = bench
        .installer
        .install(&wanted, options, Reporter::new(&report), &cancel);
    assert!(matches!(
        in_time(install).await,
        Err(InstallError::Cancelled)
    ));
    assert!(bench.nothing_is_in_the_cache());
}

async fn diagnose(bench: &Bench, recipes: &[&str]) -> Diagnosis {
    let wanted = entry(recipes);
    in_time(bench.installer.doctor(&wanted, &CancellationToken::new()))
        .await
        .unwrap()
}

#[tokio::test]
async fn the_doctor_says_what_is_here_what_is_missing_and_what_to_run() {
    let bench = Bench::new(&[
        ("node", "node-16"),
        ("python3", "python3-without-ensurepip"),
    ]);
    let diagnosis = diagnose(&bench, &[NPM, PYPI]).await;
    let states: Vec<_> = diagnosis
        .tools
        .iter()
        .map(|tool| (tool.name, tool.state.clone()))
        .collect();
    assert_eq!(
        states[0],
        (
            "node",
            Err("version 16.20.1 is too old: 18 or newer is needed".to_owned())
        )
    );
    assert_eq!(states[1], ("npm", Err("not on PATH".to_owned())));
    assert_eq!(states[3].0, "python3 venv");
    assert!(states[3].1.as_ref().unwrap_err().contains("ensurepip"));
    assert_eq!(diagnosis.in_use(), None);
    let advice = diagnosis.advice.unwrap();
    assert_eq!(
        (advice.before().as_str(), advice.command.as_str()),
        (
            ", install one of: node, npm, python3, python3 venv; then",
            "dsh-conform servers install foo-server"
        )
    );
    let bench = Bench::new(&[("apt-get", "apt-get-installs")]);
    let advice = diagnose(&bench, &[NPM, SYSTEM]).await.advice;
    let advice = advice.unwrap();
    assert_eq!(
        (advice.before(), advice.command.as_str()),
        (
            String::new(),
            "dsh-conform servers install foo-server --system"
        )
    );
    let bench = Bench::new(&NODE);
    let advice = diagnose(&bench, &[PATH, NPM, SYSTEM]).await.advice;
    let advice = advice.unwrap();
    assert_eq!(
        (advice.before(), advice.command.as_str()),
        (String::new(), "dsh-conform servers install foo-server")
    );
    bench.install(&entry(&[NPM])).await.unwrap();
    let diagnosis = diagnose(&bench, &[NPM]).await;
    assert_eq!(diagnosis.in_use().unwrap().version, Ok("1.2.3".to_owned()));
    assert_eq!((diagnosis.advice, diagnosis.leftovers.len()), (None, 0));
    let newer = diagnose(&bench, &[&NPM.replace("1.2.3", "1.2.4")]).await;
    assert_eq!(newer.leftovers, [bench.slot()]);
    let cancel = CancellationToken::new();
    let _lock = Lock::acquire(bench.installer.cache(), "foo-server", || (), &cancel)
        .await
        .unwrap();
    let meanwhile = diagnose(&bench, &[&NPM.replace("1.2.3", "1.2.4")]).await;
    assert!(meanwhile.leftovers.is_empty(), "someone else is at work");
}
