//! Records against their documentation, and damaged records.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};

use store::codec::tagged::{FieldValue, UnknownFields};
use store::codec::{FRAME_HEAD_BYTES, TAGGED_VERSION};
use store::descriptor::{
    CompactionOptions, CompactionPolicy, DateTieredOptions, Durability, SplitOptions, SplitPolicy,
};
use store::layout::{EndWidth, SectionKind, ValuePiece, ValueShape};
use store::quota::QuotaLimits;
use store::{FamilyDescriptor, TableDescriptor, TableId, ValueLayout};

use super::*;
use crate::catalog::record::{decode, encode};

/// A record as stored, and what decodes and encodes it.
struct RecordSample {
    name: &'static str,
    bytes: Vec<u8>,
    again: fn(&[u8]) -> crate::Result<Vec<u8>>,
}

fn sample<T: FieldValue + PartialEq + Debug>(name: &'static str, record: &T) -> RecordSample {
    let bytes = encode(record);
    assert_eq!(decode::<T>(&bytes).unwrap(), *record);
    RecordSample { name, bytes, again: |bytes| decode::<T>(bytes).map(|record| encode(&record)) }
}

fn unknown() -> UnknownFields {
    UnknownFields::default()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn pairs(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(text(name), text(value))]
}

fn descriptor(id: u32, compaction: CompactionPolicy) -> TableDescriptor {
    let shape = ValueShape {
        prefix: vec![1],
        pieces: vec![
            ValuePiece::Fixed(0),
            ValuePiece::Variable { ends: EndWidth::Two, sections: vec![1] },
            ValuePiece::Rest(2),
        ],
    };
    let family = FamilyDescriptor {
        ttl: Some(std::time::Duration::from_millis(1_500)),
        value_layout: ValueLayout {
            sections: vec![SectionKind::Fixed(4), SectionKind::Variable, SectionKind::Variable],
            shapes: vec![shape],
        }
        .into(),
        compaction: CompactionOptions::of(compaction),
        ..FamilyDescriptor::new("d")
    };
    TableDescriptor {
        id: TableId(id),
        name: text("public.t"),
        families: vec![family],
        region_replication: 1,
        durability: Durability::AsyncWal,
        split_points: vec![vec![0x80, 0]],
        memstore_flush_bytes: Some(1 << 20),
        split: SplitOptions {
            policy: SplitPolicy::KeyPrefix { length: 2 },
            max_file_bytes: 300,
            normalization: true,
            normalizer_target_bytes: Some(1 << 20),
            normalizer_target_regions: Some(4),
        },
        colocated_with: Some(TableId(id + 1)),
    }
}

fn column() -> ColumnRecord {
    ColumnRecord {
        name: text("a"),
        type_oid: 1_043,
        modifier: 24,
        not_null: true,
        default: Some(text("'x'")),
        generated: Some(text("b || 'y'")),
        family: 1,
        identity: Some(IdentityRecord::ByDefault),
        missing: Some(text("z")),
        dropped: true,
        collation: Some(Collation::CUtf8),
        retained: IgnoredColumnAttributes {
            statistics: Some(100),
            storage: Some(StorageKind::External),
            compression: Some('l'),
            options: pairs("n_distinct", "7"),
            unknown: unknown(),
        },
        unknown: unknown(),
    }
}

fn index() -> IndexRecord {
    let key = IndexKeyRecord {
        expression: text("b"),
        descending: true,
        nulls_first: true,
        unknown: unknown(),
    };
    IndexRecord {
        oid: 1_001,
        name: text("i"),
        unique: true,
        constraint: true,
        keys: vec![key],
        include: vec![0],
        salt_buckets: 4,
        descriptor: descriptor(1_001, CompactionPolicy::Leveled(Default::default())).into(),
        nulls_not_distinct: true,
        predicate: Some(text("b > ''")),
        building: true,
        deferral: Deferral::Deferred,
        primary: true,
        inverted: Some(text("array_ops")),
        restriction: Some(IndexRestriction::Unusable),
        eventual: true,
        followed: Some(1_001),
        retained: IgnoredIndexAttributes {
            parameters: pairs("fillfactor", "70"),
            is_hash: true,
            operator_classes: vec![(0, text("text_pattern_ops"))],
            unknown: unknown(),
        },
        unknown: unknown(),
    }
}

fn foreign_key() -> ForeignKey {
    ForeignKey {
        name: text("k"),
        columns: vec![1],
        table: 1_000,
        referenced: vec![1],
        index: Some(1_001),
        match_full: true,
        on_delete: ReferentialAction::SetDefault,
        on_update: ReferentialAction::Cascade,
        valid: true,
        deferral: Deferral::Immediate,
        delete_columns: vec![1],
        unknown: unknown(),
    }
}

fn trigger() -> TriggerRecord {
    TriggerRecord {
        number: 1_002,
        name: text("g"),
        function: 1_003,
        timing: TriggerTiming::After,
        events: vec![TriggerEvent::Update],
        is_row: true,
        columns: vec![0],
        condition: Some(text("new.b > ''")),
        arguments: vec![text("x")],
        firing: TriggerFiring::Always,
        old_table: Some(text("o")),
        new_table: Some(text("n")),
        is_constraint: true,
        deferral: Deferral::Immediate,
        referenced: Some(1_000),
        unknown: unknown(),
    }
}

fn view_relation() -> ViewRelation {
    ViewRelation {
        schema: Some(text("public")),
        name: text("t"),
        oid: 1_000,
        columns: vec![text(""), text("b")],
        used: vec![1],
        unknown: unknown(),
    }
}

fn policy() -> PolicyRecord {
    let using = PolicyExpressionRecord {
        text: text("select b > '' from public.t"),
        relations: vec![view_relation()],
        search_path: vec![text("public")],
        unknown: unknown(),
    };
    PolicyRecord {
        number: 1_004,
        name: text("p"),
        is_restrictive: true,
        command: PolicyCommand::Update,
        roles: vec![1_005],
        using: Some(using),
        check: Some(PolicyExpressionRecord::default()),
        unknown: unknown(),
    }
}

fn table() -> TableRecord {
    let blank = ColumnRecord { name: text("b"), type_oid: 25, modifier: -1, ..Default::default() };
    let check = CheckRecord {
        name: text("c"),
        predicate: text("b <> 'n'"),
        valid: true,
        unknown: unknown(),
    };
    let within = DateTieredOptions::default();
    TableRecord {
        oid: 1_000,
        schema: text("public"),
        name: text("t"),
        columns: vec![column(), blank],
        primary_key: vec![KeyRecord { column: 1, descending: true, ..Default::default() }],
        primary_key_name: text("t_pkey"),
        checks: vec![check],
        indexes: vec![index()],
        foreign_keys: vec![foreign_key()],
        salt_buckets: 0,
        schema_version: 1,
        descriptor: descriptor(1_000, CompactionPolicy::DateTiered(within)).into(),
        kind: TableKind::Materialized { populated: true },
        on_commit: OnCommit::DeleteRows,
        retained: IgnoredTableAttributes {
            parameters: pairs("fillfactor", "70"),
            unlogged: true,
            replica_identity: ReplicaIdentity::Index(1_001),
            clustered_on: Some(1_001),
            key_parameters: pairs("fillfactor", "80"),
            key_include: vec![0],
            unknown: unknown(),
        },
        without_triggers: true,
        client_timestamps: true,
        column_cells: true,
        cell_ttl: true,
        triggers: vec![trigger()],
        policies: vec![policy()],
        row_security: true,
        forces_row_security: true,
        unknown: unknown(),
    }
}

fn view() -> ViewRecord {
    let column = ViewColumnRecord {
        name: text("b"),
        type_oid: 25,
        modifier: -1,
        default: Some(text("'d'")),
        unknown: unknown(),
    };
    let relation = view_relation();
    ViewRecord {
        oid: 1_003,
        schema: text("public"),
        name: text("v"),
        columns: vec![column],
        text: text("SELECT b FROM public.t"),
        relations: vec![relation],
        search_path: vec![text("public")],
        check_option: Some(CheckOption::Cascaded),
        security_invoker: Some(true),
        triggers: vec![trigger()],
        security_barrier: Some(false),
        unknown: unknown(),
    }
}

fn function() -> FunctionRecord {
    let parameter = ParameterRecord {
        name: text("a"),
        type_oid: 23,
        default: Some(text("7")),
        unknown: unknown(),
    };
    let hints = PlannerHints {
        cost: Some(1.0),
        rows: Some(10.0),
        parallel: Parallel::Safe,
        is_leakproof: true,
        unknown: unknown(),
    };
    FunctionRecord {
        number: 1_009,
        schema: text("public"),
        name: text("f"),
        parameters: vec![parameter],
        returns: ReturnRecord::Table(vec![(text("r"), 25)]),
        volatility: Volatility::Stable,
        strict: true,
        body: text("SELECT a"),
        search_path: Some(Vec::new()),
        kind: RoutineKind::Procedure,
        more: vec![
            ParameterExtension::InOut(0),
            ParameterExtension::Variadic,
            ParameterExtension::Out(1, text("o"), 23),
        ],
        is_expression: true,
        hints,
        language: Language::PlPgSql,
        settings: pairs("search_path", "public"),
        security_definer: true,
        unknown: unknown(),
    }
}

fn sequence() -> Sequence {
    Sequence {
        oid: 1_004,
        schema: text("public"),
        name: text("s"),
        id: 1_005,
        type_oid: 20,
        start: 1,
        first: 5,
        increment: -1,
        min: i64::MIN,
        max: i64::MAX,
        cache: 1,
        cycle: true,
        owned_by: Some((1_000, 0)),
        unknown: unknown(),
    }
}

fn statistics() -> TableStatistics {
    let column = ColumnStatistics {
        name: text("a"),
        type_oid: 23,
        null_fraction: 0.5,
        distinct: 3.0,
        common: vec![(vec![0x80, 7], 0.25)],
        bounds: vec![vec![0x80], vec![0x81]],
        unknown: unknown(),
        decoded: Default::default(),
    };
    TableStatistics {
        rows: 300,
        estimate: 310,
        columns: vec![column],
        partial_indexes: vec![(1_001, 9)],
        unknown: unknown(),
    }
}

fn types() -> [RecordSample; 3] {
    let label = LabelRecord { rank: -1, number: 1_008, name: text("l"), unknown: unknown() };
    let (schema, name) = (text("public"), text("x"));
    let attribute = AttributeRecord {
        name: text("a"),
        type_oid: 25,
        modifier: -1,
        dropped: true,
        collation: Some(Collation::C),
        unknown: unknown(),
    };
    let domain = DomainRecord {
        number: 1_016,
        schema: text("public"),
        name: text("y"),
        type_oid: 1_700,
        modifier: 655_366,
        not_null: true,
        default: Some(text("0")),
        checks: table().checks,
        collation: Some(Collation::Posix),
        unknown: unknown(),
    };
    let composite = CompositeRecord {
        number: 1_010,
        schema: text("public"),
        name: text("w"),
        attributes: vec![attribute],
        unknown: unknown(),
    };
    let labels = vec![label];
    [
        sample(
            "EnumRecord",
            &EnumRecord { number: 1_006, schema, name, labels, unknown: unknown() },
        ),
        sample("CompositeRecord", &composite),
        sample("DomainRecord", &domain),
    ]
}

/// Returns one of each record that is stored in a row of its own; together they have all fields.
fn samples() -> Vec<RecordSample> {
    let coprocessor = CoprocessorRecord {
        name: text("log"),
        coprocessor: text("audit"),
        kind: CoprocessorKind::Endpoint,
        priority: -5,
        arguments: pairs("table", "l"),
        unknown: unknown(),
    };
    let coprocessors = CoprocessorRecords { attached: vec![coprocessor], unknown: unknown() };
    let schema = SchemaRecord { oid: 2_200, name: text("public"), unknown: unknown() };
    let grant = |grantee| AclRecord { grantee, grantor: 1_010, privileges: 2, grantable: 2 };
    let database = DatabaseRecord {
        oid: 1_001,
        name: text("shop"),
        catalog_table: 1_001,
        owner: Some(1_002),
        is_template: true,
        rejects_connections: true,
        connection_limit: Some(20),
        settings: pairs("work_mem", "8MB"),
        acl: Some(vec![grant(0)]),
        unknown: unknown(),
    };
    let comment = CommentRecord { text: text("…"), unknown: unknown() };
    let membership =
        MembershipRecord { role: 103, grantor: 10, admin_option: true, unknown: unknown() };
    let settings = RoleSettingsRecord {
        database: Some(5),
        settings: pairs("work_mem", "8MB"),
        unknown: unknown(),
    };
    let role = RoleRecord {
        number: 1_010,
        name: text("ann"),
        attributes: 18,
        connection_limit: Some(3),
        verifier: Some(text("SCRAM-SHA-256$4096:…")),
        valid_until: Some(-1),
        member_of: vec![membership],
        settings: vec![settings],
        unknown: unknown(),
    };
    let access = AccessRecord {
        owner: 1_010,
        acl: Some(vec![grant(0), grant(1_011)]),
        columns: vec![(1, vec![grant(1_012)])],
        unknown: unknown(),
    };
    let limits = QuotaLimits { requests: Some(300), read_bytes: None, write_bytes: Some(1) };
    let mut samples = vec![
        sample("DatabaseRecord", &database),
        sample("SchemaRecord", &schema),
        sample("TableRecord", &table()),
        sample("CoprocessorRecords", &coprocessors),
        sample("ViewRecord", &view()),
        sample("Sequence", &sequence()),
        sample("FunctionRecord", &function()),
        sample("RoleRecord", &role),
        sample("AccessRecord", &access),
        sample("CommentRecord", &comment),
        sample("TableStatistics", &statistics()),
        sample("QuotaLimits", &limits),
    ];
    samples.extend(types());
    samples
}

/// Returns the declared tags or variants of each type, `1 oid, 2 name`.
fn declarations() -> BTreeMap<&'static str, String> {
    let sources = [
        include_str!("mod.rs"),
        include_str!("../../../../store/src/descriptor/tags.rs"),
        include_str!("../../../../store/src/quota.rs"),
    ];
    let declared = sources.iter().flat_map(|source| source.split("tagged_").skip(1));
    let declared = declared.filter_map(|one| {
        let (_, body) =
            one.split_once("!(").filter(|(kind, _)| ["fields", "enum"].contains(kind))?;
        let (name, body) = body.split_once(" {")?;
        let end = ["unknown);", "unknown, ", ");"].iter().find_map(|end| body.find(end))?;
        let body = body[..end].trim().trim_end_matches('}');
        let words: Vec<&str> = body.split_whitespace().collect();
        Some((name, words.join(" ").trim_end_matches(',').to_owned()))
    });
    declared.collect()
}

/// Returns the lines of a record's example: one for each field, with its tag and name.
fn example(sample: &RecordSample, fields: &str) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    let mut lines = format!("```hex {}\n", sample.name);
    let mut line = |bytes: &[u8], about: &str| {
        let rows = bytes.chunks(16).map(|row| hex(row).trim_end().to_owned()).collect::<Vec<_>>();
        let (last, before) = rows.split_last().unwrap();
        before.iter().for_each(|row| writeln!(lines, "{row}").unwrap());
        writeln!(lines, "{last:<47} | {about}").unwrap();
    };
    line(&sample.bytes[..FRAME_HEAD_BYTES], "length, CRC32C");
    line(&[TAGGED_VERSION], "version");
    let mut rest = &sample.bytes[FRAME_HEAD_BYTES + 1..];
    while let [tag, after @ ..] = rest {
        let short = usize::from(after[0] & 0x7f);
        let (length, head) = match after[0] < 0x80 {
            true => (short, 2),
            false => (short | usize::from(after[1]) << 7, 3),
        };
        let number = format!("{tag} ");
        let field = fields.split(", ").find(|one| one.starts_with(&number)).unwrap();
        line(&rest[..head + length], field);
        rest = &rest[head + length..];
    }
    lines + "```\n"
}

#[test]
fn records_match_documented_tags_and_examples() {
    let documentation = concat!(
        include_str!("../../../../docs/formats/catalog-records.md"),
        include_str!("../../../../docs/formats/catalog-descriptors.md"),
        include_str!("../../../../docs/formats/catalog-examples.md"),
    );
    let declared = declarations();
    assert!(declared.len() > 50, "{declared:?}");
    let mut missing = String::new();
    for (name, tags) in &declared {
        let section = documentation.split(&format!("## {name}\n")).nth(1);
        let rows = section.map(|section| {
            let section = section.split("\n#").next().unwrap_or_default();
            let cells = section.lines().filter_map(|line| line.strip_prefix("| "));
            let rows =
                cells.filter(|cells| cells.starts_with(|first: char| first.is_ascii_digit()));
            let row = |cells: &str| cells.split(" | ").take(2).collect::<Vec<_>>().join(" ");
            rows.map(row).collect::<Vec<_>>().join(", ")
        });
        let is_enum = documentation.contains(&format!("\n| {name} | {tags} |"));
        if !is_enum && rows.as_ref() != Some(tags) {
            writeln!(missing, "{name}: {tags}, not {rows:?}").unwrap();
        }
    }
    for sample in samples() {
        let example = example(&sample, &declared[sample.name]);
        if !documentation.contains(&example) {
            missing.push_str(&example);
        }
    }
    assert!(missing.is_empty(), "docs/formats/catalog-*.md do not contain:\n{missing}");
}

/// Returns a payload with its frame.
fn framed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn unknown_fields_are_retained() {
    for sample in samples() {
        let mut payload = sample.bytes[FRAME_HEAD_BYTES..].to_vec();
        // Tags 98 and 300.
        payload.extend_from_slice(&[98, 2, 7, 8, 0xac, 2, 0]);
        let later = framed(&payload);
        match sample.name {
            "QuotaLimits" => {
                let error = (sample.again)(&later).unwrap_err();
                assert!(
                    error.message.contains("unknown field 98 of QuotaLimits at byte"),
                    "{error:?}"
                );
            }
            name => assert_eq!((sample.again)(&later).unwrap(), later, "{name}"),
        }
    }
}

#[test]
fn damaged_records_are_errors() {
    let error = |payload: &[u8]| {
        let mut whole = vec![TAGGED_VERSION];
        whole.extend_from_slice(payload);
        decode::<SchemaRecord>(&framed(&whole)).unwrap_err()
    };
    for (payload, message) in [
        (&b"\x01\x02\x98\x11\x02\x03ab"[..], "value of 3 bytes is cut to 2 at byte 7"),
        (b"\x01\x01\x07\x02\x02\xff\xff", "SchemaRecord.name: text that is not UTF-8 at byte 6"),
        (b"\x01\x02\x98\x11", "no value of SchemaRecord.name in the record at byte 1"),
        (b"\x01\x01\x07\x01\x01\x07", "second value of SchemaRecord.oid at byte 6"),
        (b"\x01\x02\x07\x07", "SchemaRecord.oid: 1 trailing bytes at byte 4"),
        (
            b"\x01\x05\xff\xff\xff\xff\x7f",
            "SchemaRecord.oid: number 34359738367 is out of range at byte 3",
        ),
        (b"\x80", "incomplete number at byte 1"),
    ] {
        let error = error(payload);
        let message = format!("damaged catalog record: {message}");
        assert_eq!((&*error.sqlstate, &*error.message), ("XX001", &*message));
    }
    let other = framed(&[1, 1, 1, 7]);
    let error = decode::<SchemaRecord>(&other).unwrap_err();
    assert!(error.message.ends_with("unsupported record version 1; the supported version is 2"));
    for sample in samples() {
        for length in 0..sample.bytes.len() {
            assert!((sample.again)(&sample.bytes[..length]).is_err(), "{} {length}", sample.name);
        }
    }
}

/// Mutated records with a correct checksum are errors, or records that are encoded and decoded
/// without a change.
#[test]
fn mutated_records_do_not_panic() {
    let mut seed: u64 = 0x5eed;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    let (mut accepted, mut rejected) = (0, 0);
    for sample in samples() {
        for _ in 0..2_000 {
            let mut payload = sample.bytes[FRAME_HEAD_BYTES..].to_vec();
            for _ in 0..=random(3) {
                let at = 1 + random(payload.len());
                match (random(4), payload.get_mut(at)) {
                    (0, Some(byte)) => *byte = random(256) as u8,
                    (1, Some(byte)) => *byte ^= 1 << random(8),
                    (2, _) | (_, None) => payload.insert(at.min(payload.len()), random(256) as u8),
                    _ => drop(payload.drain(at..(at + random(4)).min(payload.len()))),
                }
            }
            match (sample.again)(&framed(&payload)) {
                Ok(bytes) => {
                    accepted += 1;
                    assert_eq!(
                        (sample.again)(&bytes).unwrap(),
                        bytes,
                        "{} {payload:?}",
                        sample.name
                    );
                }
                Err(error) => {
                    rejected += 1;
                    assert_eq!(error.sqlstate, "XX001");
                }
            }
        }
    }
    assert!(accepted > 1_000 && rejected > 1_000, "{accepted} accepted, {rejected} rejected");
}
