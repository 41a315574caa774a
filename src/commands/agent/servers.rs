//! The language servers that an agent gets.

use dsh_e2e::Target;
use dsh_harness::lsp_stdio::LspStdioConfig;
use dsh_harness::{Deployment, RowConfig};
use dsh_profiles::with_language_servers;

use super::{Args, usage};
use crate::commands::subject::{self, BUILT_IN};
use crate::exit::Exit;
use crate::shell::Shell;
use crate::signals::Interruption;

/// Finds the servers that were asked for, and adds them to the rows.
pub(super) async fn added(
    shell: &Shell,
    args: &Args,
    rows: Deployment,
    interruption: &Interruption,
) -> Result<Deployment, Exit> {
    let mut servers: Option<LspStdioConfig> = None;
    for (index, name) in args.server.iter().enumerate() {
        if args.server[..index].contains(name) {
            continue;
        }
        let target = find(shell, args, name, interruption).await?;
        let config = config_of(&target).map_err(|problem| usage(&problem))?;
        match &mut servers {
            None => servers = Some(config),
            Some(servers) => servers.servers.extend(config.servers),
        }
    }
    Ok(match servers {
        None => rows,
        Some(servers) => with_language_servers(rows, servers),
    })
}

async fn find(
    shell: &Shell,
    args: &Args,
    name: &str,
    interruption: &Interruption,
) -> Result<Target, Exit> {
    if name == BUILT_IN {
        return Ok(subject::built_in(shell));
    }
    subject::named(shell, name, args.install, interruption).await
}

/// The configuration of a target's host.
fn config_of(target: &Target) -> Result<LspStdioConfig, String> {
    let rows = Deployment::parse(&target.deployment(), "(made from the options)")
        .map_err(|error| error.problem().to_owned())?;
    let config = rows.rows().iter().find_map(|row| match row.config() {
        RowConfig::LspStdio(config) => Some(config.clone()),
        _ => None,
    });
    config.ok_or_else(|| format!("{} has no row of a language server", target.name))
}
