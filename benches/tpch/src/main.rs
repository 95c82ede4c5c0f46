//! Generator of TPC-H rows for COPY, with fields separated by `|`: `tpch SCALE TABLE`, for
//! example `tpch 0.1 lineitem`.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scale, table] = arguments.as_slice() else { return usage() };
    let Ok(scale) = scale.parse::<f64>() else { return usage() };
    let written = match table.as_str() {
        "region" => write(RegionGenerator::new(scale, 1, 1).iter()),
        "nation" => write(NationGenerator::new(scale, 1, 1).iter()),
        "part" => write(PartGenerator::new(scale, 1, 1).iter()),
        "supplier" => write(SupplierGenerator::new(scale, 1, 1).iter()),
        "partsupp" => write(PartSuppGenerator::new(scale, 1, 1).iter()),
        "customer" => write(CustomerGenerator::new(scale, 1, 1).iter()),
        "orders" => write(OrderGenerator::new(scale, 1, 1).iter()),
        "lineitem" => write(LineItemGenerator::new(scale, 1, 1).iter()),
        _ => return usage(),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tpch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: tpch SCALE TABLE");
    ExitCode::FAILURE
}

/// Writes rows without the trailing `|`, which COPY does not accept.
fn write<T: Display>(rows: impl Iterator<Item = T>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    for row in rows {
        let line = row.to_string();
        writeln!(out, "{}", line.strip_suffix('|').unwrap_or(&line))?;
    }
    out.flush()
}
