//! A real browser, and a probe that it runs on a page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Chromium, where there is one.
#[expect(clippy::disallowed_methods, reason = "only CI has to have it")]
#[expect(clippy::print_stderr, reason = "a skip is loud")]
pub(crate) fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| {
        let mut version = Command::new(name);
        version
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    });
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI has to have Chromium; see .ci/run"
        );
        eprintln!("SKIPPED: there is no Chromium here, so no page was looked at");
    }
    found
}

/// What the probe finds on a page in a window of that width. Anything on the console fails.
pub(crate) fn found(chromium: &str, name: &str, page: &str, width: u32, dark: bool) -> Value {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}-{width}-{dark}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the browser and its folder work");
    std::fs::write(folder.join("page.html"), page).expect("the browser and its folder work");
    // A window is never narrower than 500 px; a frame is.
    let frame = format!(
        "<!DOCTYPE html><body style='margin:0'><iframe src='page.html' \
         style='border:0;width:{width}px;height:900px'></iframe>"
    );
    let file: PathBuf = folder.join("frame.html");
    std::fs::write(&file, frame).expect("the browser and its folder work");
    let output = Command::new(chromium)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg("--window-size=1700,1000")
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            u8::from(!dark)
        ))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser and its folder work");
    let log = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(complaints.is_empty(), "on the console: {complaints:?}");
    let dom = String::from_utf8(output.stdout).expect("the browser and its folder work");
    std::fs::remove_dir_all(&folder).expect("the browser and its folder work");
    let start = "<pre id=\"found\">";
    let from = dom.rfind(start).expect("the probe ran") + start.len();
    let json = &dom[from..from
        + dom[from..]
            .find("</pre>")
            .expect("the browser and its folder work")];
    serde_json::from_str(json).expect("the browser and its folder work")
}

/// A page with the probe behind its own script. The policy names the probe too, so that the page's
/// script runs under the policy it has everywhere.
pub(crate) fn probed(page: &str, probe: &str, script: bool) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(probe));
    let allowed = format!("script-src 'sha256-{digest}' ");
    let mut page = page.replacen("script-src ", &allowed, 1);
    if !script {
        let from = page.rfind("<script>").expect("the page has a script");
        let to = page.rfind("</script>").expect("the page has a script") + "</script>".len();
        page.replace_range(from..to, "");
    }
    page.replacen("</body>", &format!("<script>{probe}</script>\n</body>"), 1)
}
