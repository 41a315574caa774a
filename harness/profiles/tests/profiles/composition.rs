//! What each profile is composed of.

use std::sync::Arc;

use dsh_harness::agent::LoopOptions;
use dsh_harness::kernel::Cancel;
use dsh_harness::{PluginName, Runtime};
use dsh_profiles::{Composition, Host, HostOptions, Profile, composition_table};

use crate::support::Script;

async fn mounted(profile: Profile) -> Host {
    let options = HostOptions {
        profile,
        deployment: profile.composition().deployment,
        runtime: Runtime::builder(),
        models: Arc::new(Script(Vec::new())),
        folder: None,
        prefix: "session".to_owned(),
        limits: LoopOptions::default(),
    };
    Host::mount(options, &Cancel::new()).await.unwrap()
}

/// RUN-3: the table is what is mounted, row by row; nothing waits for a row that is not there.
#[tokio::test]
async fn what_is_mounted_is_what_the_table_says() {
    let table = composition_table();
    for profile in Profile::ALL {
        let Composition {
            base,
            deployment,
            front,
        } = profile.composition();
        let host = mounted(profile).await;
        assert!(host.runtime().waiting().is_empty());
        let mut expected = vec!["dsh-tools", "dsh-system-prompt", "dsh-agent"];
        if base {
            expected.push(PluginName::TimeoutPolicy.as_str());
        }
        let rows = deployment.rows().iter();
        expected.extend(rows.map(|row| row.config().plugin().as_str()));
        expected.push(front);
        assert_eq!(host.runtime().plugins(), expected, "{profile}");
        let line = table
            .lines()
            .find(|line| line.starts_with(&format!("| `{profile}` |")))
            .unwrap();
        for row in deployment.rows() {
            let row = format!("`{}`", row.config().plugin());
            assert!(line.contains(&row), "{row} is not in: {line}");
        }
        assert!(line.contains(front) && line.contains(if base { "| yes |" } else { "| no |" }));
        host.dispose().await.unwrap();
    }
}

/// The minimal one has the file tools and no rules for them.
#[tokio::test]
async fn the_minimal_profile_has_the_file_tools_alone() {
    let host = mounted(Profile::SdkMinimal).await;
    let tools = host.runtime().tools().list();
    let tools: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["edit", "read", "write"]);
    host.dispose().await.unwrap();
}

/// The document has the table as the code has it.
#[test]
fn the_document_is_current() {
    let document = include_str!("../../PROFILES.md");
    let map = include_str!("../../../../ARCHITECTURE.md");
    let table = composition_table();
    assert!(
        document.contains(&table),
        "put this into PROFILES.md:\n{table}"
    );
    assert!(
        map.contains(table.trim()),
        "put this into ARCHITECTURE.md:\n{table}"
    );
}
