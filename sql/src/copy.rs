//! COPY: input of rows from fields that the wire layer has split, and the format options of COPY.
//!
//! [`CopyIn`] parses the fields, fills in defaults and stages the rows in batches through a
//! [`RowSink`], with the same encoding, observers and checks as INSERT. COPY TO runs as a query;
//! the wire layer formats its rows by [`CopyFormat`].

use std::sync::Arc;

use types::binary;
use types::cast;
use types::encoding::Encoding;
use types::expr::{EvalContext, Expr};
use types::text;
use types::{Datum, SqlType};

use crate::ast;
use crate::catalog::Catalog;
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::exec;
use crate::exec::constraint_queue::ConstraintQueue;
use crate::exec::insert::RowSink;
use crate::rows::Completion;

/// The format of COPY data; the wire layer splits it into fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFormat {
    /// CSV; otherwise PostgreSQL's text format.
    pub csv: bool,
    /// PostgreSQL's binary format: fields with length prefixes, in the form of `typsend`.
    pub binary: bool,
    /// Field delimiter.
    pub delimiter: u8,
    /// Text that represents NULL.
    pub null: String,
    /// Encoding of the data, if it is not the client encoding.
    pub encoding: Option<&'static Encoding>,
    /// True if the first line is a header, which is skipped.
    pub header: bool,
    /// CSV quote character.
    pub quote: u8,
    /// CSV escape character, before a quote inside a field.
    pub escape: u8,
    /// Number of columns of the data.
    pub column_count: usize,
    /// Options FORCE_QUOTE, FORCE_NOT_NULL, FORCE_NULL and HEADER MATCH.
    pub forced: ColumnOptions,
}

/// COPY options for single columns. Lists are as long as the row, or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnOptions {
    /// FORCE_QUOTE: values are always quoted.
    pub quote: Vec<bool>,
    /// FORCE_NOT_NULL: the null string is text.
    pub not_null: Vec<bool>,
    /// FORCE_NULL: the null string is NULL even when it is quoted.
    pub null: Vec<bool>,
    /// HEADER MATCH: the names that the header must have.
    pub header: Option<Vec<String>>,
}

impl ColumnOptions {
    fn read(options: &ast::CopyOptions, names: &[&str], out: bool) -> Result<ColumnOptions> {
        let csv = options.format == ast::CopyFormatOption::Csv;
        let all = [
            ("quote", "FORCE_QUOTE", &options.force_quote, true),
            ("not null", "FORCE_NOT_NULL", &options.force_not_null, false),
            ("null", "FORCE_NULL", &options.force_null, false),
        ];
        let mut lists = [Vec::new(), Vec::new(), Vec::new()];
        for ((what, option, columns, for_output), list) in all.into_iter().zip(&mut lists) {
            let Some(columns) = columns else { continue };
            let wrong = match (csv, out == for_output) {
                (false, _) => Some("available only in CSV mode".to_owned()),
                (true, true) => None,
                (true, false) => {
                    Some(format!("only available using COPY {}", if out { "FROM" } else { "TO" }))
                }
            };
            if let Some(wrong) = wrong {
                bail!(FEATURE_NOT_SUPPORTED: "COPY force {what} {wrong}");
            }
            *list = match columns {
                ast::CopyColumns::All => vec![true; names.len()],
                ast::CopyColumns::Named(wanted) => {
                    let of_copy = |column: &&ast::Ident| !names.contains(&column.value.as_str());
                    if let Some(missing) = wanted.iter().find(of_copy) {
                        let name = &missing.value;
                        bail!(INVALID_COLUMN_REFERENCE: "{option} column \"{name}\" not referenced by COPY");
                    }
                    let is_wanted =
                        |name: &&str| wanted.iter().any(|column| column.value == **name);
                    names.iter().map(is_wanted).collect()
                }
            };
        }
        if out && options.header == ast::CopyHeader::Match {
            bail!(FEATURE_NOT_SUPPORTED: "cannot use \"match\" with HEADER in COPY TO");
        }
        let header = (options.header == ast::CopyHeader::Match)
            .then(|| names.iter().map(|name| (*name).to_owned()).collect());
        let [quote, not_null, null] = lists;
        Ok(ColumnOptions { quote, not_null, null, header })
    }
}

impl CopyFormat {
    /// Reads the options of a COPY statement over columns with these names.
    ///
    /// # Errors
    ///
    /// 22023 and 0A000 as PostgreSQL reports them.
    pub fn read(
        options: &ast::CopyOptions,
        names: &[&str],
        direction: ast::CopyDirection,
    ) -> Result<CopyFormat> {
        let csv = options.format == ast::CopyFormatOption::Csv;
        let invalid = |message: &str| err!(INVALID_PARAMETER_VALUE: message);
        let encoding = options.encoding.as_deref().map(read_encoding).transpose()?;
        for (what, value) in [("quote", &options.quote), ("escape", &options.escape)] {
            if !csv && value.is_some() {
                bail!(FEATURE_NOT_SUPPORTED: "COPY {what} available only in CSV mode");
            }
        }
        let byte = |what: &str, value: &Option<String>, default: u8| match value.as_deref() {
            None => Ok(default),
            Some(text) if text.len() == 1 => Ok(text.as_bytes()[0]),
            Some(_) => {
                Err(err!(FEATURE_NOT_SUPPORTED: "COPY {what} must be a single one-byte character"))
            }
        };
        let binary = options.format == ast::CopyFormatOption::Binary;
        if binary {
            let refused = [
                (options.delimiter.is_some(), "DELIMITER", sqlstate::SYNTAX_ERROR),
                (options.null.is_some(), "NULL", sqlstate::SYNTAX_ERROR),
                (
                    options.header != ast::CopyHeader::Absent,
                    "HEADER",
                    sqlstate::FEATURE_NOT_SUPPORTED,
                ),
            ];
            if let Some((_, what, code)) = refused.into_iter().find(|(given, ..)| *given) {
                let message = format!("cannot specify {what} in BINARY mode");
                return Err(Error::new(code, message));
            }
        }
        let quote = byte("quote", &options.quote, b'"')?;
        let format = CopyFormat {
            csv,
            binary,
            delimiter: byte("delimiter", &options.delimiter, if csv { b',' } else { b'\t' })?,
            null: options.null.clone().unwrap_or(if csv { "" } else { "\\N" }.to_owned()),
            header: options.header != ast::CopyHeader::Absent,
            encoding,
            quote,
            escape: byte("escape", &options.escape, quote)?,
            column_count: names.len(),
            forced: ColumnOptions::read(options, names, direction == ast::CopyDirection::ToStdout)?,
        };
        if !csv && matches!(format.delimiter, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9') {
            let delimiter = char::from(format.delimiter);
            return Err(invalid(&format!("COPY delimiter cannot be \"{delimiter}\"")));
        }
        if matches!(format.delimiter, b'\n' | b'\r') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return"));
        }
        if format.null.contains(['\n', '\r']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        if csv && format.delimiter == format.quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        Ok(format)
    }
}

/// Reads the option ENCODING.
fn read_encoding(name: &str) -> Result<&'static Encoding> {
    let encoding = Encoding::by_name(name).ok_or_else(|| {
        err!(INVALID_PARAMETER_VALUE: "argument to option \"encoding\" must be a valid encoding name")
    })?;
    if encoding.is_supported() {
        return Ok(encoding);
    }
    Err(Error::not_supported(
        format!("COPY with the encoding {}", encoding.name),
        "Convert the data to UTF8.",
    ))
}

/// Returns the positions of the columns that a COPY statement names; all visible, not generated
/// ones if it names none.
///
/// # Errors
///
/// 42703 and 42701 as PostgreSQL reports them.
pub fn columns(table: &Table, named: &[ast::ColumnName]) -> Result<Vec<usize>> {
    if named.is_empty() {
        let plain = |column: &usize| table.columns[*column].generated.is_none();
        return Ok(table.visible_columns().filter(plain).collect());
    }
    let mut columns = Vec::with_capacity(named.len());
    for written in named {
        let name = &written.name;
        let column = table.find_column(written)?.ok_or_else(|| {
            err!(UNDEFINED_COLUMN: "column \"{}\" of relation \"{}\" does not exist", name.value, table.name; at name.position)
        })?;
        if table.columns[column].generated.is_some() {
            bail!(INVALID_COLUMN_REFERENCE: "column \"{}\" is a generated column", name.value;
                detail "Generated columns cannot be used in COPY."; at name.position);
        }
        if columns.contains(&column) {
            bail!(DUPLICATE_COLUMN: "column \"{}\" specified more than once", name.value; at name.position);
        }
        columns.push(column);
    }
    Ok(columns)
}

/// State of a running COPY … FROM STDIN.
pub struct CopyIn {
    /// The format of the data.
    pub format: CopyFormat,
    table: Arc<Table>,
    /// Column and type of each field.
    targets: Vec<(usize, SqlType)>,
    /// Row under construction: defaults in the columns without a field.
    row: Vec<Datum>,
    style: text::TextStyle,
    context: EvalContext,
    /// Catalog, for the domains of fields.
    catalog: Arc<Catalog>,
    sink: RowSink,
    /// Columns without a field whose default is not immutable.
    volatile: Vec<usize>,
    /// WHERE condition.
    filter: Option<Expr>,
    rows: u64,
    /// First and last line of the rows that are not staged yet: an error may refer to any of
    /// them.
    pending_lines: (u64, u64),
}

impl CopyIn {
    /// Starts a COPY into columns of a table.
    pub(crate) fn new(
        table: Arc<Table>,
        columns: &[usize],
        format: CopyFormat,
        context: exec::Context,
        (filter, catalog): (Option<Expr>, Arc<Catalog>),
    ) -> Result<CopyIn> {
        let eval = context.eval.clone();
        let style = eval.style.clone();
        let mut row = vec![Datum::Null; table.columns.len()];
        let mut volatile = Vec::new();
        for (position, column) in table.columns.iter().enumerate() {
            if let Some(default) = column.default_expression()
                && !columns.contains(&position)
            {
                // A default that is not immutable is evaluated for each row.
                match default.is_immutable() {
                    true => row[position] = default.eval_row(&[], &eval)?,
                    false => volatile.push(position),
                }
            }
        }
        let mut computed =
            volatile.iter().filter_map(|&column| table.columns[column].default_expression());
        let row_by_row = computed.any(|default| default.calls_volatile_routines())
            || filter.as_ref().is_some_and(Expr::calls_volatile_routines);
        Ok(CopyIn {
            format,
            targets: columns.iter().map(|at| (*at, table.columns[*at].sql_type.clone())).collect(),
            catalog,
            sink: RowSink::new(Arc::clone(&table), exec::Context { row_by_row, ..context })?,
            table,
            row,
            style,
            context: eval,
            volatile,
            filter,
            rows: 0,
            pending_lines: (0, 0),
        })
    }

    /// Returns the encoding of data in text form.
    pub fn encoding(&self) -> &'static Encoding {
        self.format.encoding.unwrap_or(self.style.encoding)
    }

    /// Adds a row; `None` is NULL. `line` is the line of the data, from 1, for messages.
    ///
    /// # Errors
    ///
    /// With CONTEXT `COPY t, line 3, column dep_time: "abc"`.
    pub fn push_row(&mut self, line: u64, fields: &[Option<&str>]) -> Result<()> {
        // Without columns, an empty line is a row.
        let is_empty = matches!(fields, [Some("")]) || (self.format.csv && fields == [None]);
        let fields = if is_empty && self.targets.is_empty() { &[] } else { fields };
        if fields.len() > self.targets.len() {
            return Err(self.miscounted(line, fields.len()));
        }
        for (at, field) in fields.iter().enumerate() {
            let sql_type = &self.targets[at].1;
            let datum = match field {
                None => Ok(Datum::Null),
                Some(value) => parse(value, sql_type, &self.style, &self.context),
            };
            let shown = || match field {
                Some(value) => format!(": \"{value}\""),
                None => ": null input".to_owned(),
            };
            self.set_field(at, datum, (line, &shown))?;
        }
        if fields.len() < self.targets.len() {
            return Err(self.miscounted(line, fields.len()));
        }
        self.end_row(line)
    }

    /// Adds a row in binary form; `None` is NULL. `line` is its number, from 1, for messages.
    ///
    /// # Errors
    ///
    /// With CONTEXT `COPY t, line 3, column dep_time`.
    pub fn push_binary(&mut self, line: u64, fields: &[Option<&[u8]>]) -> Result<()> {
        let (found, expected) = (fields.len(), self.targets.len());
        if found != expected {
            let error =
                err!(BAD_COPY_FILE_FORMAT: "row field count is {found}, expected {expected}");
            return Err(in_line(error, &self.table, line));
        }
        for (at, field) in fields.iter().enumerate() {
            let sql_type = &self.targets[at].1;
            let datum = match field {
                None => Ok(Datum::Null),
                Some(bytes) => binary::parse_as(bytes, sql_type, self.style.encoding)
                    .and_then(|datum| fitted(datum, sql_type, &self.context)),
            };
            self.set_field(at, datum, (line, &String::new))?;
        }
        self.end_row(line)
    }

    /// Stores a value in the row after the checks of its column's domain.
    fn set_field(
        &mut self,
        at: usize,
        datum: types::Result<Datum>,
        (line, shown): (u64, &dyn Fn() -> String),
    ) -> Result<()> {
        let column = self.targets[at].0;
        let checked = datum.and_then(|datum| {
            self.catalog.check_fields(&datum, &self.context)?;
            if let Some(domain) = &self.table.columns[column].domain {
                domain.checks.check(&datum, &self.context)?;
            }
            Ok(datum)
        });
        self.row[column] = checked.map_err(|error| {
            let (table, column) = (&self.table.name, &self.table.columns[column].name);
            let error = Error::from(error);
            let within = error.context.map_or(String::new(), |within| within + "\n");
            let shown = shown();
            let context = format!("{within}COPY {table}, line {line}, column {column}{shown}");
            Error { context: Some(context), ..error }
        })?;
        Ok(())
    }

    /// Evaluates the remaining defaults and the WHERE condition, and stages the row.
    fn end_row(&mut self, line: u64) -> Result<()> {
        for column in &self.volatile {
            if let Some(default) = self.table.columns[*column].default_expression() {
                self.row[*column] = default.eval_row(&[], &self.context)?;
            }
        }
        if let Some(filter) = &self.filter {
            let kept = filter.eval_row(&self.row, &self.context);
            let kept = kept.map_err(|error| in_line(error.into(), &self.table, line))?;
            if kept != Datum::Bool(true) {
                return Ok(());
            }
        }
        self.rows += 1;
        if self.sink.pending_count() == 0 {
            self.pending_lines.0 = line;
        }
        self.pending_lines.1 = line;
        let pushed = self.sink.push(&mut self.row);
        pushed.map_err(|error| in_lines(error, &self.table, self.pending_lines))
    }

    /// Returns an error with the CONTEXT of its line, unless it has a CONTEXT already.
    pub fn located(&self, error: Error, line: u64) -> Error {
        if error.context.is_some() { error } else { in_line(error, &self.table, line) }
    }

    /// Returns PostgreSQL's error for a line with too few or too many fields.
    fn miscounted(&self, line: u64, count: usize) -> Error {
        let message = match self.targets.get(count) {
            Some((column, _)) => {
                format!("missing data for column \"{}\"", self.table.columns[*column].name)
            }
            None => "extra data after last expected column".to_owned(),
        };
        let error = err!(BAD_COPY_FILE_FORMAT: message);
        in_line(error, &self.table, line)
    }

    /// Returns the constraint queue of the rows' foreign keys.
    pub(crate) fn watch(&self) -> Option<Arc<ConstraintQueue>> {
        self.sink.watch()
    }

    /// Stages the remaining rows and returns the command tag, for example `COPY 336776`.
    pub(crate) fn finish(self) -> Result<Completion> {
        let table = Arc::clone(&self.table);
        let lines = self.pending_lines;
        let changed = self.sink.finish().map_err(|error| in_lines(error, &table, lines))?;
        // As in PostgreSQL, rows of a view count even if their trigger returns NULL.
        let rows = if table.is_view { self.rows } else { changed };
        Ok(Completion::new(format!("COPY {rows}")))
    }
}

fn parse(
    value: &str,
    sql_type: &SqlType,
    style: &text::TextStyle,
    context: &EvalContext,
) -> types::Result<Datum> {
    fitted(text::parse(value, &sql_type.base, style)?, sql_type, context)
}

/// Casts a value to its column's type modifier.
fn fitted(datum: Datum, sql_type: &SqlType, context: &EvalContext) -> types::Result<Datum> {
    if sql_type.modifier < 0 {
        return Ok(datum);
    }
    cast::cast(&datum, &sql_type.base, sql_type, false, context)
}

fn in_line(error: Error, table: &Table, line: u64) -> Error {
    in_lines(error, table, (line, line))
}

/// Adds a CONTEXT with the lines of a batch, one of which caused the error.
fn in_lines(error: Error, table: &Table, (first, last): (u64, u64)) -> Error {
    let lines =
        if first == last { format!("line {last}") } else { format!("lines {first} to {last}") };
    Error { context: Some(format!("COPY {}, {lines}", table.name)), ..error }
}
