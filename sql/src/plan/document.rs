//! EXPLAIN documents: plans in the formats JSON, XML and YAML, laid out as in PostgreSQL.
//!
//! Source: PostgreSQL's `ExplainProperty`, `ExplainOpenGroup` and related functions (explain.c).

use std::fmt::Write as _;
use std::time::Duration;

/// Document format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An array of objects.
    Json,
    /// An element `explain`.
    Xml,
    /// A list of mappings.
    Yaml,
}

/// Value of a member.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DocumentValue {
    Text(String),
    /// Number in its final form.
    Number(String),
    /// List of texts.
    Items(Vec<String>),
    /// Nested group.
    Group(DocumentGroup),
    /// List of groups, with the element name that XML uses.
    List(&'static str, Vec<DocumentGroup>),
}

/// A summary value that does not belong to a plan node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryValue {
    /// Count.
    Count(u64),
    /// Duration, shown in milliseconds.
    Time(Duration),
}

impl SummaryValue {
    pub(super) fn value(self) -> DocumentValue {
        match self {
            SummaryValue::Count(figure) => count(figure),
            SummaryValue::Time(time) => number(time.as_secs_f64() * 1e3, 3),
        }
    }
}

/// Named values in order.
pub(super) type DocumentGroup = Vec<(String, DocumentValue)>;

/// Returns a number with `places` decimal places.
pub(super) fn number(value: f64, places: usize) -> DocumentValue {
    DocumentValue::Number(format!("{value:.places$}"))
}

/// Returns an integer.
pub(super) fn count(value: u64) -> DocumentValue {
    DocumentValue::Number(value.to_string())
}

/// Returns the document of a statement with a plan.
pub(super) fn written(query: &DocumentGroup, format: Format) -> String {
    let mut out = String::new();
    match format {
        Format::Json => {
            out.push_str("[\n  ");
            json_group(query, 2, &mut out);
            out.push_str("\n]");
        }
        Format::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
            xml_group(query, 4, &mut out);
            out.push_str("  </Query>\n</explain>");
        }
        Format::Yaml => yaml_item(query, 0, &mut out),
    }
    out
}

/// Returns the document of a statement without a plan.
pub fn without_plan(name: &str, format: Format) -> String {
    match format {
        Format::Json => format!("[\n  {}\n]", quoted(name)),
        Format::Xml => format!(
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <{} />\n</explain>",
            tag(name)
        ),
        Format::Yaml => format!("- {}", quoted(name)),
    }
}

fn json_group(group: &DocumentGroup, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent + 2);
    out.push('{');
    for (at, (name, value)) in group.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\n{pad}{}: ", quoted(name));
        match value {
            DocumentValue::Text(text) => out.push_str(&quoted(text)),
            DocumentValue::Number(number) => out.push_str(number),
            DocumentValue::Items(items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                let _ = write!(out, "[{}]", items.join(", "));
            }
            DocumentValue::Group(group) => json_group(group, indent + 2, out),
            DocumentValue::List(_, groups) => {
                out.push('[');
                for (at, group) in groups.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    let _ = write!(out, "{comma}\n{pad}  ");
                    json_group(group, indent + 4, out);
                }
                let _ = write!(out, "\n{pad}]");
            }
        }
    }
    let _ = write!(out, "\n{}}}", " ".repeat(indent));
}

fn xml_group(group: &DocumentGroup, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for (name, value) in group {
        let tag = tag(name);
        match value {
            DocumentValue::Text(text) => {
                let _ = writeln!(out, "{pad}<{tag}>{}</{tag}>", escaped(text));
            }
            DocumentValue::Number(number) => {
                let _ = writeln!(out, "{pad}<{tag}>{number}</{tag}>");
            }
            DocumentValue::Items(items) => {
                let _ = writeln!(out, "{pad}<{tag}>");
                for item in items {
                    let _ = writeln!(out, "{pad}  <Item>{}</Item>", escaped(item));
                }
                let _ = writeln!(out, "{pad}</{tag}>");
            }
            DocumentValue::Group(group) => {
                let _ = writeln!(out, "{pad}<{tag}>");
                xml_group(group, indent + 2, out);
                let _ = writeln!(out, "{pad}</{tag}>");
            }
            DocumentValue::List(each, groups) => {
                let _ = writeln!(out, "{pad}<{tag}>");
                for group in groups {
                    let _ = writeln!(out, "{pad}  <{each}>");
                    xml_group(group, indent + 4, out);
                    let _ = writeln!(out, "{pad}  </{each}>");
                }
                let _ = writeln!(out, "{pad}</{tag}>");
            }
        }
    }
}

/// Writes a group as a list item, whose dash is at column `indent`.
fn yaml_item(group: &DocumentGroup, indent: usize, out: &mut String) {
    let mut lines = String::new();
    yaml_group(group, indent + 2, &mut lines);
    let _ = write!(out, "{}- {}", " ".repeat(indent), lines.trim_start());
}

fn yaml_group(group: &DocumentGroup, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for (at, (name, value)) in group.iter().enumerate() {
        let line = if at > 0 { "\n" } else { "" };
        let _ = write!(out, "{line}{pad}{name}: ");
        match value {
            DocumentValue::Text(text) => out.push_str(&quoted(text)),
            DocumentValue::Number(number) => out.push_str(number),
            DocumentValue::Items(items) => {
                for item in items {
                    let _ = write!(out, "\n{pad}  - {}", quoted(item));
                }
            }
            DocumentValue::Group(group) => {
                out.push('\n');
                yaml_group(group, indent + 2, out);
            }
            DocumentValue::List(_, groups) => {
                for group in groups {
                    out.push('\n');
                    yaml_item(group, indent + 2, out);
                }
            }
        }
    }
}

/// Returns an XML element name: letters, digits, `-`, `_` and `.` of a name, `-` for others.
fn tag(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            character => out.push(character),
        }
    }
    out
}

/// Returns a text as a JSON string, which is also valid YAML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if u32::from(control) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            character => out.push(character),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: DocumentValue) -> (String, DocumentValue) {
        (name.to_owned(), value)
    }

    fn query() -> DocumentGroup {
        let scan = vec![
            named("Node Type", DocumentValue::Text("Scan".to_owned())),
            named("Output", DocumentValue::Items(vec!["a".to_owned(), "'<' || \"B\"".to_owned()])),
        ];
        let plan = vec![
            named("Node Type", DocumentValue::Text("Limit".to_owned())),
            named("Total Cost", number(1.5, 2)),
            named("Plans", DocumentValue::List("Plan", vec![scan.clone(), scan])),
        ];
        let settings = vec![named("work_mem", DocumentValue::Text("1MB".to_owned()))];
        vec![
            named("Plan", DocumentValue::Group(plan)),
            named("Settings", DocumentValue::Group(settings)),
            named("Cells Read", count(3)),
        ]
    }

    #[test]
    fn json_and_yaml_layout_matches_postgresql() {
        let json = r#"[
  {
    "Plan": {
      "Node Type": "Limit",
      "Total Cost": 1.50,
      "Plans": [
        {
          "Node Type": "Scan",
          "Output": ["a", "'<' || \"B\""]
        },
        {
          "Node Type": "Scan",
          "Output": ["a", "'<' || \"B\""]
        }
      ]
    },
    "Settings": {
      "work_mem": "1MB"
    },
    "Cells Read": 3
  }
]"#;
        assert_eq!(written(&query(), Format::Json), json);
        let yaml = r#"- Plan: 
    Node Type: "Limit"
    Total Cost: 1.50
    Plans: 
      - Node Type: "Scan"
        Output: 
          - "a"
          - "'<' || \"B\""
      - Node Type: "Scan"
        Output: 
          - "a"
          - "'<' || \"B\""
  Settings: 
    work_mem: "1MB"
  Cells Read: 3"#;
        assert_eq!(written(&query(), Format::Yaml), yaml);
        assert_eq!(without_plan("Utility Statement", Format::Yaml), "- \"Utility Statement\"");
        assert!(without_plan("A B", Format::Xml).contains("\n  <A-B />\n"));
    }
    #[test]
    fn xml_layout_matches_postgresql() {
        let xml = r#"<explain xmlns="http://www.postgresql.org/2009/explain">
  <Query>
    <Plan>
      <Node-Type>Limit</Node-Type>
      <Total-Cost>1.50</Total-Cost>
      <Plans>
        <Plan>
          <Node-Type>Scan</Node-Type>
          <Output>
            <Item>a</Item>
            <Item>'&lt;' || "B"</Item>
          </Output>
        </Plan>
        <Plan>
          <Node-Type>Scan</Node-Type>
          <Output>
            <Item>a</Item>
            <Item>'&lt;' || "B"</Item>
          </Output>
        </Plan>
      </Plans>
    </Plan>
    <Settings>
      <work_mem>1MB</work_mem>
    </Settings>
    <Cells-Read>3</Cells-Read>
  </Query>
</explain>"#;
        assert_eq!(written(&query(), Format::Xml), xml);
    }
}
