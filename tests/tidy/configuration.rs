//! Command line: `docs/operations/configuration.md` lists the options of all commands.

use bennu::command_line::Arguments;
use clap::{Arg, Command, CommandFactory};

use super::assert_generated;

/// Returns an option with the name of its value.
fn option_name(option: &Arg) -> String {
    let name = match (option.get_long(), option.get_short()) {
        (Some(long), _) => format!("--{long} "),
        (None, Some(short)) => format!("-{short} "),
        (None, None) => String::new(),
    };
    let is_flag = !option.get_action().takes_values()
        || option.get_num_args().is_some_and(|count| count.min_values() == 0);
    let value = option.get_value_names().and_then(|names| names.first()).filter(|_| !is_flag);
    (name + value.map_or("", |value| value.as_str())).trim_end().to_owned()
}

/// Returns the row of an option.
fn option_row(option: &Arg) -> String {
    let help = option.get_help().expect("an option has a help").to_string();
    let (meaning, default) = help.split_once(" [default: ").unwrap_or((&help, ""));
    let default = default.trim_end_matches(']');
    let variable = option.get_env().map(|name| format!("`{}`", name.to_string_lossy()));
    let variable = variable.unwrap_or_default();
    format!("| `{}` | {variable} | {default} | {meaning} |\n", option_name(option))
}

/// Returns the sections of a command, or of its subcommands.
fn sections(command: &Command, above: &str) -> String {
    let name = format!("{above}{}", command.get_name());
    if command.has_subcommands() {
        let above = format!("{name} ");
        return command.get_subcommands().map(|command| sections(command, &above)).collect();
    }
    let about = command.get_about().expect("a command has a description");
    let head = "| Option | Variable | Default | Meaning |\n| --- | --- | --- | --- |\n";
    let rows: String = command.get_arguments().map(option_row).collect();
    format!("\n## {name}\n\n{about}.\n\n{head}{rows}")
}

#[test]
fn configuration_page_lists_options_of_commands() {
    let options = sections(&Arguments::command(), "");
    assert_generated("docs/operations/configuration.md", &options);
}
