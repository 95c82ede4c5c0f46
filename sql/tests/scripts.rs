//! Parser and binder scripts.
//!
//! `parser/*.txt`: cases separated by blank lines; a case is comments (`#`), SQL, a line `---`,
//! and the trees of its statements, or the error as `error SQLSTATE @position: message` with its
//! hint. `binder/*.txt`: likewise, with logical plans as expected output. `BENNU_REGOLD=1`
//! rewrites the expected output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sql::parser::parse_statements;

use crate::binder;

#[test]
fn parser() {
    run("parser", answer);
}

#[test]
fn binder_plans() {
    run("binder", binder::answer);
}

fn run(folder: &str, answer: fn(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let record = std::env::var_os("BENNU_REGOLD").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the scripts are readable")
        .map(|e| e.expect("the scripts are readable").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    for path in paths {
        let script = fs::read_to_string(&path).expect("the scripts are readable");
        let mut recorded = String::new();
        for case in script.split("\n\n").map(str::trim).filter(|case| !case.is_empty()) {
            let (question, expected) = case.split_once("\n---").unwrap_or((case, ""));
            let sql: Vec<&str> = question.lines().filter(|line| !line.starts_with('#')).collect();
            let answer = if sql.is_empty() { String::new() } else { answer(&sql.join("\n")) };
            count += usize::from(!sql.is_empty());
            if answer.trim() != expected.trim() {
                wrong.push(format!("{}\n{question}\n---\n{answer}", path.display()));
            }
            let divider = if sql.is_empty() { "" } else { "\n---\n" };
            let _ = write!(recorded, "{question}{divider}{}\n\n", answer.trim());
        }
        if record {
            fs::write(&path, recorded.trim_end().to_owned() + "\n")
                .expect("the scripts are readable");
        }
    }
    assert!(count > 0, "no script was found");
    assert!(record || wrong.is_empty(), "answers differ:\n{}", wrong.join("\n\n"));
}

fn answer(sql: &str) -> String {
    match parse_statements(sql) {
        Ok(statements) => {
            let mut text = String::new();
            for parsed in statements {
                assert!(sql[parsed.text.offset()..].starts_with(parsed.text.as_str()));
                let debug = format!("{:?}", parsed.statement);
                let mut reader = Reader { rest: &debug };
                text += &compact(&reader.node());
                text.push('\n');
            }
            if text.is_empty() { "nothing".to_owned() } else { text }
        }
        Err(error) => {
            let position = error.position.map_or(String::new(), |at| format!(" @{at}"));
            let hint = error.hint.map_or(String::new(), |hint| format!("\nhint: {hint}"));
            format!("error {}{position}: {}{hint}", error.sqlstate, error.message)
        }
    }
}

/// Parsed output of `{:?}`.
enum Node {
    Atom(String),
    List(Vec<Node>),
    Tuple(String, Vec<Node>),
    Struct(String, Vec<(String, Node)>),
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn items(&mut self, end: &str) -> Vec<Node> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.node());
            self.take(",");
        }
        items
    }

    fn word(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && !"_-.".contains(c));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word.to_owned()
    }

    fn node(&mut self) -> Node {
        if self.take("[") {
            return Node::List(self.items("]"));
        }
        if self.take("\"") {
            let mut escaped = false;
            let end = self.rest.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let (text, rest) = self.rest.split_at(end.expect("strings are closed"));
            self.rest = &rest[1..];
            return Node::Atom(format!("\"{text}\""));
        }
        let name = self.word();
        if self.rest.starts_with(" {") {
            self.take("{");
            let mut fields = Vec::new();
            while !self.take("}") {
                let field = self.word();
                assert!(self.take(":"), "{}", self.rest);
                fields.push((field, self.node()));
                self.take(",");
            }
            return Node::Struct(name, fields);
        }
        if self.take("(") { Node::Tuple(name, self.items(")")) } else { Node::Atom(name) }
    }
}

/// Prints a node as `(Name field=value …)`, `name@position`, without empty fields.
fn compact(node: &Node) -> String {
    match node {
        Node::Atom(text) => text.clone(),
        Node::List(items) => {
            let items: Vec<String> = items.iter().map(compact).collect();
            format!("[{}]", items.join(" "))
        }
        Node::Tuple(name, items) if name == "Some" => compact(&items[0]),
        Node::Tuple(name, items) => {
            let items: Vec<String> = items.iter().map(compact).collect();
            format!("({name} {})", items.join(" ")).replacen("( ", "(", 1)
        }
        Node::Struct(name, fields) => structure(name, fields),
    }
}

fn structure(name: &str, fields: &[(String, Node)]) -> String {
    let field = |wanted: &str| {
        fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| compact(value))
    };
    let at = field("position").map_or(String::new(), |position| format!("@{position}"));
    match name {
        "Ident" => {
            return field("value").expect("an identifier has a value").trim_matches('"').to_owned()
                + &at;
        }
        "TypeName" => return field("sql_type").expect("derived") + &at,
        "SqlType" => {
            let modifier = field("modifier").expect("derived");
            let suffix = if modifier == "-1" { String::new() } else { format!("/{modifier}") };
            return field("base").expect("derived") + &suffix;
        }
        "ColumnName" | "TableName" | "FunctionName" => {
            let scope = field("family").or_else(|| field("schema")).expect("derived");
            let name = field("name").expect("derived");
            return if scope == "None" { name } else { format!("{scope}.{name}") };
        }
        _ => {}
    }
    let mut text = format!("({name}{at}");
    for (field, value) in fields.iter().filter(|(field, _)| field != "position") {
        let value = compact(value);
        if !matches!(value.as_str(), "None" | "false" | "[]") {
            let _ = write!(text, " {field}={value}");
        }
    }
    text + ")"
}
