//! The command line: which command, which exit status.
//!
//! 0 on success, 2 on bad usage or configuration, 3 when no server answers, 1 otherwise. An error
//! is one line on standard error that says what to do.
//! Never: work of its own.

mod console;
mod simulate;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use domain::ids::{Kind, PublicId};
use store::postgres::PostgresOptions;

use crate::app::{self, Trouble};
use crate::config::source::Process;
use crate::config::{self, ConfigError, Settings};
use crate::demo;
use crate::http::tokens::{DEFAULT_ORG, Tokens};
use crate::telemetry::logs;

/// Delivers webhooks: signed, retried, and never lost.
#[derive(Debug, Parser)]
#[command(name = "peyk", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the API and delivers.
    Serve {
        /// Settings; without it `peyk.toml` in the working directory, if there is one.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Shows what Peyk does, on a scratch directory, in less than a minute.
    Demo {
        /// Goes on until it is stopped.
        #[arg(long)]
        forever: bool,
    },
    /// Prints a token and nothing else.
    Token {
        /// For this application (`app_…`) only; else for the whole organisation.
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// The organisation.
        #[arg(long, value_name = "ORG", default_value = DEFAULT_ORG)]
        org: String,
        /// Settings; without it `peyk.toml` in the working directory, if there is one.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Compares strategies of backoff on a herd of clients that all want the same at once.
    Simulate(simulate::Arguments),
    #[command(flatten)]
    Console(::console::Command),
    /// Makes the database, or brings it up to date, and ends; `serve` does the same when it starts.
    Migrate {
        /// Settings; without it `peyk.toml` in the working directory, if there is one.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Copies an SQLite file into an empty PostgreSQL database; no server may use either.
    Copy {
        /// The file.
        #[arg(long, value_name = "sqlite://PATH")]
        from: String,
        /// The database.
        #[arg(long, value_name = "postgres://…")]
        to: String,
    },
    /// Says whether the settings are good.
    CheckConfig {
        /// Settings; without it `peyk.toml` in the working directory, if there is one.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// Why a command did not succeed.
enum Failure {
    /// It was called or configured wrongly.
    Usage(String),
    /// No server answered.
    Unreachable(String),
    /// Anything else.
    Other(String),
}

impl From<ConfigError> for Failure {
    fn from(fault: ConfigError) -> Self {
        Self::Usage(fault.to_string())
    }
}

impl From<::console::Failure> for Failure {
    fn from(fault: ::console::Failure) -> Self {
        let said = fault.to_string();
        match fault.status() {
            2 => Self::Usage(said),
            3 => Self::Unreachable(said),
            _ => Self::Other(said),
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Database(said) => Self::Usage(said),
            Trouble::Other(said) => Self::Other(said),
        }
    }
}

impl From<String> for Failure {
    fn from(said: String) -> Self {
        Self::Other(said)
    }
}

/// Runs the command that the arguments name.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(fault) if fault.use_stderr() && fault.kind() != HELP => {
            return ended(Err(Failure::Usage(usage_line(&fault))));
        }
        Err(help) => {
            let _closed = help.print();
            return ExitCode::from(if help.use_stderr() { 2 } else { 0 });
        }
    };
    ended(match cli.command {
        Command::Serve { config } => serve(config),
        Command::Demo { forever } => demo::run(forever).map_err(Failure::Other),
        Command::Token { app, org, config } => token(app.as_deref(), &org, config),
        Command::Simulate(arguments) => simulate(&arguments),
        Command::Console(command) => console::run(command).map_err(Failure::from),
        Command::Migrate { config } => migrate(config),
        Command::Copy { from, to } => copy(&from, &to),
        Command::CheckConfig { config } => {
            load(config).map_err(Failure::from).and_then(|_| print("the settings are good"))
        }
    })
}

/// Characters of an id after its prefix.
const ID_CHARS: usize = 27;
/// What is shown when there is no argument at all.
const HELP: clap::error::ErrorKind =
    clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

fn ended(result: Result<(), Failure>) -> ExitCode {
    let (said, status) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(said)) => (said, 2),
        Err(Failure::Unreachable(said)) => (said, 3),
        Err(Failure::Other(said)) => (said, 1),
    };
    let _closed = writeln!(std::io::stderr(), "peyk: {}", said.replace('\n', " "));
    ExitCode::from(status)
}

/// The first line of what the parser says, and where to read on.
fn usage_line(fault: &clap::Error) -> String {
    let text = fault.to_string();
    let is_said = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines = text.lines().take_while(is_said);
    let said: Vec<_> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = said.join(" ");
    format!("{}; see `peyk --help`", said.strip_prefix("error: ").unwrap_or(&said))
}

fn load(file: Option<PathBuf>) -> Result<Settings, ConfigError> {
    config::load(&Process, file.as_deref())
}

fn serve(file: Option<PathBuf>) -> Result<(), Failure> {
    let settings = load(file)?;
    logs::start(&settings)?;
    Ok(app::serve(settings)?)
}

fn migrate(file: Option<PathBuf>) -> Result<(), Failure> {
    let settings = load(file)?;
    logs::start(&settings)?;
    app::migrate(&settings)?;
    print("the database is up to date")
}

fn copy(from: &str, to: &str) -> Result<(), Failure> {
    let usage = |said: &str| Failure::Usage(said.to_owned());
    let file = from.strip_prefix("sqlite://").filter(|path| !path.is_empty());
    let file = file.ok_or_else(|| usage("--from must be sqlite://<path>"))?;
    let is_postgres = to.starts_with("postgres://") || to.starts_with("postgresql://");
    if !is_postgres || PostgresOptions::check_url(to).is_err() {
        return Err(usage("--to must be postgres://<user>@<host>/<database>"));
    }
    let copied = app::copy(file.as_ref(), to)?;
    for (table, rows) in copied.tables.iter().filter(|(_, rows)| *rows > 0) {
        print(&format!("{table} {rows}"))?;
    }
    print(&format!("copied {} rows; serve with the same data_dir and main_key", copied.rows()))
}

fn token(app: Option<&str>, org: &str, file: Option<PathBuf>) -> Result<(), Failure> {
    let named = [(Kind::Organisation, "--org", Some(org)), (Kind::Application, "--app", app)];
    for (kind, argument, text) in named {
        if let Some(rule) = text.and_then(|text| broken_rule(kind, text)) {
            return Err(Failure::Usage(format!("{argument} {rule}")));
        }
    }
    let settings = load(file)?;
    let tokens = Tokens::new(&app::secret::read(&settings)?)?;
    let made = tokens.make(org, app, app::clock().now());
    print(&made.ok_or_else(|| Failure::Other("cannot make a token".to_owned()))?)
}

fn simulate(arguments: &simulate::Arguments) -> Result<(), Failure> {
    if let Some(fault) = arguments.fault() {
        return Err(Failure::Usage(fault.to_owned()));
    }
    let Some(file) = arguments.file() else { return print(arguments.output().trim_end()) };
    let written = std::fs::write(file, arguments.output());
    written.map_err(|fault| Failure::Other(format!("cannot write {}: {fault}", file.display())))
}

/// Which rule of ids a text breaks, if it breaks one.
fn broken_rule(kind: Kind, text: &str) -> Option<String> {
    if PublicId::parse(kind, text).is_some() {
        return None;
    }
    let prefix = kind.prefix();
    let Some(rest) = text.strip_prefix(prefix) else {
        return Some(format!("must begin with {prefix}"));
    };
    let count = rest.chars().count();
    Some(if count != ID_CHARS {
        format!("must have {ID_CHARS} characters after {prefix}, not {count}")
    } else if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        format!("must be {prefix} and {ID_CHARS} characters of 0-9A-Za-z")
    } else {
        "must be an id that was given out".to_owned()
    })
}

fn print(line: &str) -> Result<(), Failure> {
    let written = writeln!(std::io::stdout(), "{line}");
    written.map_err(|fault| Failure::Other(format!("cannot write to standard output: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn the_default_organisation_is_one() {
        assert!(PublicId::parse(Kind::Organisation, DEFAULT_ORG).is_some());
    }

    #[test]
    fn bad_usage_is_said_in_one_line() {
        for arguments in
            [vec!["peyk", "fly"], vec!["peyk", "serve", "--fast"], vec!["peyk", "token", "--app"]]
        {
            let fault = Cli::try_parse_from(arguments).unwrap_err();
            let said = usage_line(&fault);
            assert!(!said.contains('\n') && said.ends_with("see `peyk --help`"), "{said}");
            assert_eq!(said.matches("help").count(), 1, "{said}");
        }
    }

    #[test]
    fn the_rule_that_an_id_breaks_is_named() {
        let digits = |count: usize| "0".repeat(count);
        for (text, rule) in [
            ("acme".to_owned(), "must begin with org_"),
            ("app_".to_owned() + &digits(27), "must begin with org_"),
            ("org_".to_owned() + &digits(26), "must have 27 characters after org_, not 26"),
            ("org_".to_owned() + &digits(26) + "-", "must be org_ and 27 characters of 0-9A-Za-z"),
            // Larger than 20 bytes can be.
            ("org_".to_owned() + &"z".repeat(27), "must be an id that was given out"),
        ] {
            assert_eq!(broken_rule(Kind::Organisation, &text).as_deref(), Some(rule), "{text}");
        }
        assert_eq!(broken_rule(Kind::Organisation, DEFAULT_ORG), None);
    }
}
