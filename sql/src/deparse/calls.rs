//! Deparsing of column references, whole rows, and function calls.

use types::datatype::RegKind;
use types::function::quote_ident;
use types::{DataType, SqlType};

use crate::ast::{Expr, FunctionCall, Ident};
use crate::binder::resolution_notes::CallNote;
use crate::catalog::CatalogRelation;
use crate::catalog::domain::VALUE;
use crate::deparse::SqlWriter;
use crate::deparse::convert::{explicit_conversion, literal};
use crate::deparse::node::{Call, DeparseNode, SyntaxPart};
use crate::parser;

impl<'a> SqlWriter<'a> {
    /// Returns the column or row that a name refers to.
    pub(super) fn column(&mut self, parts: &'a [Ident]) -> DeparseNode<'a> {
        let position = parts.first().map_or(0, |part| part.position);
        if let Some((at, sql_type)) = self.notes.rows.get(&position) {
            let name = match self.is_of_trigger {
                true => parts.first().map(|part| part.value.clone()),
                false => self.entries.get(at).and_then(|entry| entry.name.clone()),
            };
            self.used.push(*at);
            let text = format!("{}.*", quote_ident(&name.unwrap_or_default()));
            return DeparseNode::Word { text, row_type: Some(sql_type.clone()) };
        }
        if self.is_of_trigger {
            // The row qualifies each column.
            return word(parts.iter().map(|part| quote_ident(&part.value)).collect());
        }
        let last = parts.last().map_or("", |part| part.value.as_str());
        let Some(note) = self.notes.columns.get(&position) else {
            return word(parts.iter().map(|part| quote_ident(&part.value)).collect::<Vec<_>>());
        };
        let Some(entry) = note.relation.and_then(|at| self.entries.get(&at)) else {
            // The value of a domain in its constraint.
            let is_value = self.value_word && last == VALUE;
            return word(vec![if is_value { "VALUE".to_owned() } else { quote_ident(last) }]);
        };
        self.used.extend(note.relation);
        let name = note.index.and_then(|index| entry.columns.get(index)).unwrap_or(&note.name);
        let is_bare = note.relation == self.policy_entry
            && note.relation.is_some_and(|at| self.level.contains(&at));
        let qualifier = entry.name.iter().filter(|_| !is_bare);
        word(qualifier.chain([name]).map(|part| quote_ident(part)).collect())
    }

    /// Returns the column for a field of a relation's whole row; `None` for fields of other rows.
    pub(super) fn column_of_row(&mut self, row: &Expr, name: &str) -> Option<DeparseNode<'a>> {
        let (Expr::Column(parts) | Expr::WholeRow(parts)) = row else { return None };
        let (at, _) = self.notes.rows.get(&parts.first()?.position)?;
        let known = self.notes.entries.get(at)?;
        let index = known.columns.iter().position(|(known, ..)| known == name)?;
        self.used.push(*at);
        let entry = self.entries.get(at)?;
        let column = entry.columns.get(index)?;
        Some(word(entry.name.iter().chain([column]).map(|part| quote_ident(part)).collect()))
    }

    /// Returns the columns that `t.*` expands to in a list.
    pub(super) fn columns_of(&mut self, parts: &[Ident]) -> Vec<DeparseNode<'a>> {
        let name = parts.last().map_or("", |part| part.value.as_str());
        let mut found = self.entries.values().filter(|entry| entry.known_as == name);
        let Some(entry) = found.next() else { return Vec::new() };
        let column = |column: &String| {
            word(entry.name.iter().chain([column]).map(|part| quote_ident(part)).collect())
        };
        entry.columns.iter().map(column).collect()
    }

    /// Returns a call of a built-in function.
    pub(super) fn plain_call(
        &self,
        name: &str,
        arguments: Vec<DeparseNode<'a>>,
    ) -> DeparseNode<'a> {
        let arguments = arguments.into_iter().map(|one| (None, one)).collect();
        DeparseNode::Call(Box::new(Call {
            name: quote_ident(name),
            arguments,
            variadic: false,
            star: false,
            distinct: false,
            order_by: &[],
            within_group: false,
            filter: None,
            over: None,
        }))
    }

    /// Returns a call.
    pub(super) fn call(&mut self, call: &'a FunctionCall) -> DeparseNode<'a> {
        let position = call.name.position();
        let name = call.name.name.value.as_str();
        if let Some(note) = self.notes.calls.get(&position) {
            return self.user_call(call, note);
        }
        let wanted = self.notes.operands(position, name, 0);
        if call.own_syntax
            && let Some(parts) = self.own_syntax(call, wanted)
        {
            return DeparseNode::Syntax { parts };
        }
        // `type(value)` is a cast.
        if wanted.is_none()
            && let [argument] = call.arguments.as_slice()
            && let Some(to) = DataType::from_name(name)
            && call.over.is_none()
            && to.internal_name() == name
        {
            let node = self.value(&argument.value, None);
            let from = self.type_of(&argument.value);
            return explicit_conversion(node, &from, &to.into());
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        let any = any_from(name);
        for (at, argument) in call.arguments.iter().enumerate() {
            if any.is_some_and(|any| at >= any) && !call.variadic {
                arguments.push((None, self.as_it_is(&argument.value)));
                continue;
            }
            let to = wanted.and_then(|wanted| wanted.get(at)).cloned();
            let to = to.filter(|_| argument.name.is_none());
            let to = match at == 0 && matches!(name, "nextval" | "currval" | "setval") {
                true => Some(DataType::Reg(RegKind::Class).into()),
                false => to,
            };
            let own = argument.name.as_ref().map(|name| name.value.clone());
            arguments.push((own, self.value(&argument.value, to)));
        }
        let shown = match name == "grouping" {
            true => "GROUPING".to_owned(),
            false => quote_ident(name),
        };
        let filter = call.filter.as_ref().map(|filter| self.value(filter, None));
        DeparseNode::Call(Box::new(Call {
            name: shown,
            arguments,
            variadic: call.variadic,
            star: call.star,
            distinct: call.distinct,
            order_by: &call.order_by,
            within_group: call.within_group,
            filter,
            over: call.over.as_ref(),
        }))
    }

    /// Returns an argument of a parameter of any type; a literal remains of unknown type.
    fn as_it_is(&mut self, value: &'a Expr) -> DeparseNode<'a> {
        match value {
            Expr::String { value, .. } => DeparseNode::Constant {
                value: Some(value.clone()),
                sql_type: DataType::Unknown.into(),
            },
            value => self.value(value, None),
        }
    }

    /// Returns a literal as a constant of a type.
    pub(super) fn literal(&self, text: &str, to: &SqlType) -> DeparseNode<'a> {
        let DataType::Reg(kind) = to.base else { return literal(text, to, self.reader.style) };
        let shown = match kind {
            RegKind::Type => {
                let named = parser::parse_type(text).ok();
                let catalog = self.reader.catalog;
                let found = named.and_then(|one| catalog.type_named(&one, self.reader.path).ok());
                found.map(|sql_type| self.type_name(&sql_type))
            }
            RegKind::Class => self.class_name(text),
            _ => None,
        };
        let value = Some(shown.unwrap_or_else(|| text.to_owned()));
        DeparseNode::Constant { value, sql_type: to.clone() }
    }

    /// Returns the name of the relation that a text refers to, qualified as necessary.
    fn class_name(&self, text: &str) -> Option<String> {
        let name = parser::parse_relation_name(text).ok()?;
        let (schema, own, oid) = match self.reader.catalog.find(&name, self.reader.path)? {
            CatalogRelation::Table(table) => (&table.schema, &table.name, table.oid),
            CatalogRelation::View(view) => (&view.schema, &view.name, view.oid),
            CatalogRelation::Sequence(sequence) => (&sequence.schema, &sequence.name, sequence.oid),
            _ => return None,
        };
        Some(self.relation_name(schema, own, oid))
    }

    /// Returns the call of a user-defined function.
    fn user_call(&mut self, call: &'a FunctionCall, note: &'a CallNote) -> DeparseNode<'a> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for (at, argument) in call.arguments.iter().enumerate() {
            let to = note.wanted.get(at).cloned();
            let own = argument.name.as_ref().map(|name| name.value.clone());
            arguments.push((own, self.value(&argument.value, to)));
        }
        let mut variadic = call.variadic;
        if let Some(first) = note.gathered {
            let elements = arguments.split_off(first.min(arguments.len()));
            let sql_type = note.function.parameters.last().cloned();
            let sql_type = sql_type.unwrap_or_else(|| DataType::Unknown.into());
            let elements = elements.into_iter().map(|(_, one)| one).collect();
            arguments.push((None, DeparseNode::Array { elements, sql_type }));
            variadic = true;
        }
        let record = &note.function.record;
        let (catalog, path) = (self.reader.catalog, self.reader.path);
        let found = catalog.functions_named(None, &record.name, path);
        let name = match found.iter().any(|one| one.record.number == record.number) {
            true => quote_ident(&record.name),
            false => format!("{}.{}", quote_ident(&record.schema), quote_ident(&record.name)),
        };
        DeparseNode::Call(Box::new(Call {
            name,
            arguments,
            variadic,
            star: false,
            distinct: false,
            order_by: &[],
            within_group: false,
            filter: None,
            over: None,
        }))
    }

    /// Returns a call in its special syntax; `None` if it has none.
    ///
    /// Source: PostgreSQL's `get_func_sql_syntax`.
    fn own_syntax(
        &mut self,
        call: &'a FunctionCall,
        wanted: Option<&[SqlType]>,
    ) -> Option<Vec<SyntaxPart<'a>>> {
        use SyntaxPart::{Keyword, Operand, Value, Words};

        let arguments: Vec<&'a Expr> = call.arguments.iter().map(|one| &one.value).collect();
        let value = |writer: &mut Self, at: usize| {
            let to = wanted.and_then(|wanted| wanted.get(at)).cloned();
            Value(writer.value(arguments[at], to))
        };
        let words: &[&'static str] = match (call.name.name.value.as_str(), arguments.len()) {
            ("extract", 2) => {
                let Expr::String { value: field, .. } = arguments[0] else { return None };
                let (begin, field) = (Words("EXTRACT("), Keyword(field.clone()));
                let of = value(self, 1);
                return Some(vec![begin, field, Words(" FROM "), of, Words(")")]);
            }
            ("timezone", 2) => {
                let (zone, of) = (value(self, 0), value(self, 1));
                let operand = |part| match part {
                    Value(node) => Operand(node),
                    other => other,
                };
                let (open, close) = (Words("("), Words(")"));
                let at = Words(" AT TIME ZONE ");
                return Some(vec![open, operand(of), at, operand(zone), close]);
            }
            ("position", 2) => {
                let (within, what) = (value(self, 0), value(self, 1));
                let (open, close) = (Words("POSITION(("), Words("))"));
                return Some(vec![open, what, Words(") IN ("), within, close]);
            }
            ("is_normalized", 2) => {
                let Expr::String { value: form, .. } = arguments[1] else { return None };
                let of = value(self, 0);
                let (open, close) = (Words("(("), Words(" NORMALIZED)"));
                let form = if form == "NFC" { String::new() } else { format!(" {form}") };
                return Some(vec![open, of, Words(") IS"), Keyword(form), close]);
            }
            ("btrim" | "ltrim" | "rtrim", 1 | 2) => {
                let side = match call.name.name.value.as_str() {
                    "btrim" => "TRIM(BOTH",
                    "ltrim" => "TRIM(LEADING",
                    _ => "TRIM(TRAILING",
                };
                let of = value(self, 0);
                let mut parts = vec![Words(side)];
                if arguments.len() == 2 {
                    parts.extend([Words(" "), value(self, 1)]);
                }
                parts.extend([Words(" FROM "), of, Words(")")]);
                return Some(parts);
            }
            ("overlay", 3) => &["OVERLAY(", " PLACING ", " FROM ", ")"],
            ("overlay", 4) => &["OVERLAY(", " PLACING ", " FROM ", " FOR ", ")"],
            ("substring", 2) => &["SUBSTRING(", " FROM ", ")"],
            ("substring", 3) if wanted.is_some_and(|one| one[1].base == DataType::Text) => {
                &["SUBSTRING(", " SIMILAR ", " ESCAPE ", ")"]
            }
            ("substring", 3) => &["SUBSTRING(", " FROM ", " FOR ", ")"],
            ("overlaps", 4) => &["((", ", ", ") OVERLAPS (", ", ", "))"],
            _ => return None,
        };
        let mut parts = vec![Words(words[0])];
        for (at, words) in words[1..].iter().enumerate() {
            parts.extend([value(self, at), Words(words)]);
        }
        Some(parts)
    }
}

/// Returns the position of the first argument for which a function accepts any type.
fn any_from(name: &str) -> Option<usize> {
    match name {
        "concat" | "json_build_array" | "json_build_object" | "jsonb_build_array"
        | "jsonb_build_object" | "num_nulls" | "num_nonnulls" => Some(0),
        "format" | "concat_ws" => Some(1),
        _ => None,
    }
}

fn word<'a>(parts: Vec<String>) -> DeparseNode<'a> {
    DeparseNode::Word { text: parts.join("."), row_type: None }
}
