//! Rows of a CSV file or of the plan itself, handed to users one per iteration, or when they want one.
//! A file is read once, before the load starts.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;

use crate::pace::share::Part;
use crate::plan::{FeederEnd, FeederOrder, FeederPlan, Per};
use crate::refusal::PlanError;

/// The rows, and who gets which.
#[derive(Debug)]
pub struct Feeder {
    order: FeederOrder,
    at_end: Option<FeederEnd>,
    per: Per,
    on_use: bool,
    columns: usize,
    rows: u32,
    /// All values one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Of the sequence: the next row, over all threads.
    next: AtomicU64,
    /// Which of them are this engine's.
    part: Part,
}

/// More rows than this are a mistake in the plan.
const MAX_ROWS: u32 = 100_000_000;
/// In place of a row's number: a user that holds none, and one for whom there are no more.
pub const NO_ROW: u32 = u32::MAX;
const AFTER_LAST: u32 = u32::MAX - 1;
/// The values of a row after the last.
const EOF: &[u8] = b"<EOF>";

impl Feeder {
    /// Reads the file, or takes the rows of the plan; returns the names of the columns too.
    pub fn read(plan: &FeederPlan, part: &Part) -> Result<(Self, Vec<String>), PlanError> {
        let mut feeder = Self {
            order: plan.order,
            at_end: plan.at_end,
            per: plan.per,
            on_use: plan.on_use,
            columns: 0,
            rows: 0,
            bytes: Vec::new(),
            ends: Vec::new(),
            next: AtomicU64::new(0),
            part: part.clone(),
        };
        let columns = feeder.fill(plan);
        let columns = columns.map_err(|why| PlanError(format!("feeder {:?}: {why}", plan.name)))?;
        Ok((feeder, columns))
    }

    /// Returns the names of the columns.
    fn fill(&mut self, plan: &FeederPlan) -> Result<Vec<String>, String> {
        let delimiter = u8::try_from(plan.delimiter).unwrap_or_default();
        refuse_if! {
            !delimiter.is_ascii() || b"\"\r\n\0".contains(&delimiter) =>
                "delimiter is {:?}, expected one character of ASCII that is neither a quote nor a line's end", plan.delimiter;
            plan.file.is_some() != plan.rows.is_empty() =>
                "has both file and rows, or none, expected one of them";
        }
        let columns = match &plan.file {
            Some(file) => self.read_file(plan, file, delimiter)?,
            None => plan.columns.clone(),
        };
        let count = columns.len();
        for (place, row) in plan.rows.iter().enumerate() {
            refuse_if! {
                row.len() != count =>
                    "row {} has {} values, expected {count}, as many as columns names", place + 1, row.len();
            }
            self.add(row.iter().map(String::as_bytes));
        }
        check_columns(plan, &columns)?;
        self.columns = count;
        Ok(columns)
    }

    /// Returns the names of the columns.
    fn read_file(
        &mut self,
        plan: &FeederPlan,
        file: &str,
        delimiter: u8,
    ) -> Result<Vec<String>, String> {
        // A mark of UTF-8 is no part of the first value: the reader passes over it.
        let mut marks = [0; 2];
        let read = File::open(file).and_then(|mut file| file.read(&mut marks));
        refuse_if! {
            read.is_ok_and(|bytes| bytes == 2) && matches!(marks, [0xff, 0xfe] | [0xfe, 0xff]) =>
                "{file} is in UTF-16, expected UTF-8: iconv -f UTF-16 -t UTF-8";
        }
        let bad = |error: csv::Error| format!("{file} is not CSV: {error}");
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(plan.quotes)
            .has_headers(plan.columns.is_empty())
            .from_path(Path::new(file))
            .map_err(|error| format!("{file} cannot be read: {error}"))?;
        let first = reader.headers().map_err(bad)?.iter();
        let first: Vec<String> = first.map(|column| column.trim().to_owned()).collect();
        let (named, found) = (plan.columns.len(), first.len());
        refuse_if! {
            named > 0 && found > 0 && named != found =>
                "columns names {named}, expected {found}, as many as {file} has";
        }
        let (columns, header) = match named {
            0 => (first, " after its line of column names"),
            _ => (plan.columns.clone(), ""),
        };
        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(bad)? {
            self.add(&record);
            refuse_if! {
                self.rows > MAX_ROWS => "{file} has more than {MAX_ROWS} rows, expected fewer";
            }
        }
        refuse_if! { self.rows == 0 => "{file} has no row{header}, expected at least one"; }
        Ok(columns)
    }

    fn add<'a>(&mut self, row: impl IntoIterator<Item = &'a [u8]>) {
        for value in row {
            self.bytes.extend_from_slice(value);
            self.ends.push(self.bytes.len());
        }
        self.rows += 1;
    }

    /// A value; empty where there is none.
    pub fn value(&self, row: u32, column: usize) -> &[u8] {
        if column >= self.columns {
            return &[];
        }
        if row == AFTER_LAST {
            return EOF;
        }
        let at = row as usize * self.columns + column;
        let begin = at
            .checked_sub(1)
            .map_or(Some(0), |before| self.ends.get(before).copied());
        match (begin, self.ends.get(at)) {
            (Some(begin), Some(end)) => &self.bytes[begin..*end],
            _ => &[],
        }
    }

    /// Whether a user keeps its first row.
    pub fn stays_with_user(&self) -> bool {
        self.order == FeederOrder::UniquePerUser
    }

    /// How many rows requests are said to take; `None` where a user keeps its own.
    pub fn claimed_rows(&self) -> Option<u32> {
        (!self.stays_with_user()).then_some(self.rows)
    }

    /// Whether a user takes a row when it wants one, not with every iteration.
    pub fn on_use(&self) -> bool {
        self.on_use
    }

    /// The row after `held`; `None` when there is no more, and the user ends. `user`: its number
    /// among those of all threads, in the order of their starts.
    pub fn draw(&self, user: u64, held: u32, rng: &mut impl Rng) -> Option<u32> {
        let rows = u64::from(self.rows);
        let drawn = match (self.order, self.per) {
            (FeederOrder::Sequence, Per::Run) => {
                self.part.number(self.next.fetch_add(1, Ordering::Relaxed))
            }
            (FeederOrder::Sequence, Per::User) if held == NO_ROW => 0,
            (FeederOrder::Sequence, Per::User) => u64::from(held) + 1,
            (FeederOrder::Random, _) => rng.random_range(0..rows),
            (FeederOrder::UniquePerUser, _) => user,
        };
        match self.at_end {
            Some(FeederEnd::Stop) if drawn >= rows => None,
            Some(FeederEnd::Eof) if drawn >= rows => Some(AFTER_LAST),
            _ => Some((drawn % rows) as u32),
        }
    }
}

fn check_columns(plan: &FeederPlan, columns: &[String]) -> Result<(), String> {
    for (place, column) in columns.iter().enumerate() {
        refuse_if! {
            column.is_empty() || column.contains([' ', '|', '}']) =>
                "column {} is named {column:?}, expected a name without blanks, | and }}", place + 1;
            columns[..place].contains(column) =>
                "two columns are named {column:?}, expected different names";
        }
    }
    let (ends, order) = (plan.at_end, plan.order);
    refuse_if! {
        plan.per == Per::User && (order != FeederOrder::Sequence || plan.on_use) =>
            "per is user, which is for the order sequence with a row for every iteration; leave it out";
        plan.on_use && (order == FeederOrder::UniquePerUser || ends == Some(FeederEnd::Stop)) =>
            "on_use is set with rows that stay or that end, expected the order random, or sequence with at_end: recycle or eof";
        order == FeederOrder::Random && ends.is_some() =>
            "at_end is set, but rows drawn at random have no end; leave it out";
        order != FeederOrder::Random && ends.is_none() =>
            "at_end is missing, expected recycle (begin again at the first row), stop (the user ends) or eof (every value is <EOF>)";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    fn plan(file: &Path, order: &str, at_end: Option<&str>) -> FeederPlan {
        serde_json::from_value(serde_json::json!(
            {"name": "people", "file": file, "order": order, "at_end": at_end}
        ))
        .unwrap()
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn values_are_those_of_the_file() {
        let file = file("name,town\nAda,\"London, UK\"\nGrace,\n");
        let (feeder, columns) = Feeder::read(
            &plan(file.path(), "sequence", Some("stop")),
            &Part::default(),
        )
        .unwrap();
        assert_eq!(columns, ["name", "town"]);
        assert_eq!(feeder.value(0, 1), b"London, UK");
        assert_eq!(feeder.value(1, 0), b"Grace");
        assert_eq!(feeder.value(1, 1), b"");
        assert_eq!(feeder.value(7, 7), b"");
    }

    #[test]
    fn byte_order_marks_are_no_values() {
        let read = |bytes: &[u8], columns: &[&str]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            let mut plan = serde_json::to_value(plan(file.path(), "random", None)).unwrap();
            plan["columns"] = columns.into();
            Feeder::read(&serde_json::from_value(plan).unwrap(), &Part::default())
        };
        let (feeder, columns) = read(b"\xef\xbb\xbfname,town\nAda,\"London, UK\"\n", &[]).unwrap();
        assert_eq!(columns, ["name", "town"]);
        assert_eq!(feeder.value(0, 1), b"London, UK");
        let (feeder, _) = read(b"\xef\xbb\xbf\"Ada\",x\n", &["a", "b"]).unwrap();
        assert_eq!(feeder.value(0, 0), b"Ada");
        for utf16 in [&b"\xff\xfea\0\n\0"[..], b"\xfe\xff\0a\0\n"] {
            assert!(read(utf16, &[]).unwrap_err().0.contains("UTF-16"));
        }
    }

    #[test]
    fn a_file_without_names_is_given_them() {
        let file = file("1\tx y\n2\t\"z\"\n");
        let named = |columns: &[&str], delimiter: &str| {
            let mut plan = serde_json::to_value(plan(file.path(), "random", None)).unwrap();
            plan["columns"] = columns.into();
            plan["delimiter"] = delimiter.into();
            Feeder::read(&serde_json::from_value(plan).unwrap(), &Part::default())
        };
        let (feeder, columns) = named(&["id", "text"], "\t").unwrap();
        assert_eq!((feeder.rows, columns.len()), (2, 2));
        assert_eq!(feeder.value(0, 0), b"1");
        assert_eq!(feeder.value(1, 1), b"z");
        assert!(
            named(&["id"], "\t")
                .unwrap_err()
                .0
                .contains("names 1, expected 2")
        );
        assert!(
            named(&["a", "a"], "\t")
                .unwrap_err()
                .0
                .contains("two columns")
        );
        assert!(named(&[], "\"").unwrap_err().0.contains("delimiter is"));
    }

    #[test]
    fn a_plan_may_have_the_rows_itself() {
        let read = |edit: &dyn Fn(&mut serde_json::Value)| {
            let mut plan = serde_json::json!({"name": "p", "order": "unique_per_user", "at_end": "recycle",
                "columns": ["a", "b"], "rows": [["1", "x,\"y"], ["2", ""]]});
            edit(&mut plan);
            Feeder::read(&serde_json::from_value(plan).unwrap(), &Part::default())
        };
        let (feeder, columns) = read(&|_| {}).unwrap();
        assert_eq!(
            (feeder.rows, columns.as_slice()),
            (2, &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(
            (feeder.value(0, 1), feeder.value(1, 0)),
            (&b"x,\"y"[..], &b"2"[..])
        );
        assert_eq!(
            feeder.draw(3, NO_ROW, &mut SmallRng::seed_from_u64(1)),
            Some(1)
        );
        let refused = |edit: &dyn Fn(&mut serde_json::Value)| read(edit).unwrap_err().0;
        assert!(refused(&|plan| plan["file"] = "a.csv".into()).contains("expected one of them"));
        assert!(
            refused(&|plan| plan["rows"] = serde_json::json!([])).contains("expected one of them")
        );
        assert!(
            refused(&|plan| plan["columns"] = serde_json::json!(["a"]))
                .contains("row 1 has 2 values")
        );
    }

    #[test]
    fn rows_come_in_their_order_and_end_as_declared() {
        let file = file("a\n1\n2\n");
        let mut rng = SmallRng::seed_from_u64(1);
        let mut draws = |order: &str, at_end: Option<&str>, users: [u64; 3]| {
            let (feeder, _) =
                Feeder::read(&plan(file.path(), order, at_end), &Part::default()).unwrap();
            users.map(|user| feeder.draw(user, NO_ROW, &mut rng))
        };
        assert_eq!(
            draws("sequence", Some("stop"), [0; 3]),
            [Some(0), Some(1), None]
        );
        assert_eq!(
            draws("sequence", Some("recycle"), [0; 3]),
            [Some(0), Some(1), Some(0)]
        );
        assert_eq!(
            draws("unique_per_user", Some("stop"), [1, 1, 2]),
            [Some(1), Some(1), None]
        );
        assert!(draws("random", None, [0; 3]).iter().all(Option::is_some));
    }

    #[test]
    fn each_user_goes_through_rows_of_its_own_and_knows_their_end() {
        let file = file("a\n1\n2\n");
        let mut rng = SmallRng::seed_from_u64(1);
        let mut drawn = |per: &str, at_end: &str| {
            let mut plan =
                serde_json::to_value(plan(file.path(), "sequence", Some(at_end))).unwrap();
            plan["per"] = per.into();
            let (feeder, _) =
                Feeder::read(&serde_json::from_value(plan).unwrap(), &Part::default()).unwrap();
            let mut rows = [NO_ROW; 2];
            let mut values = Vec::new();
            for turn in 0..6 {
                let held = &mut rows[turn % 2];
                let Some(row) = feeder.draw(0, *held, &mut rng) else {
                    values.push("stop".to_owned());
                    continue;
                };
                *held = row;
                values.push(String::from_utf8(feeder.value(row, 0).to_vec()).unwrap());
            }
            values.join(" ")
        };
        assert_eq!(drawn("user", "recycle"), "1 1 2 2 1 1");
        assert_eq!(drawn("user", "stop"), "1 1 2 2 stop stop");
        assert_eq!(drawn("user", "eof"), "1 1 2 2 <EOF> <EOF>");
        assert_eq!(drawn("run", "eof"), "1 2 <EOF> <EOF> <EOF> <EOF>");
    }

    #[test]
    fn quotes_may_be_characters_like_others() {
        let file = file("a\n\"x\"\n");
        let mut plan = serde_json::to_value(plan(file.path(), "random", None)).unwrap();
        plan["quotes"] = false.into();
        let (feeder, _) =
            Feeder::read(&serde_json::from_value(plan).unwrap(), &Part::default()).unwrap();
        assert_eq!(feeder.value(0, 0), b"\"x\"");
    }

    #[test]
    fn files_that_cannot_feed_are_refused() {
        let refusal = |text: &str, order: &str, at_end: Option<&str>| {
            let file = file(text);
            Feeder::read(&plan(file.path(), order, at_end), &Part::default())
                .unwrap_err()
                .0
        };
        assert!(refusal("a\n", "random", None).contains("no row"));
        assert!(refusal("a,a\n1,2\n", "random", None).contains("two columns"));
        assert!(refusal("a,b\n1\n", "random", None).contains("not CSV"));
        assert!(refusal("a\n1\n", "sequence", None).contains("at_end is missing"));
        assert!(refusal("a\n1\n", "random", Some("stop")).contains("no end"));
        let missing = Feeder::read(
            &plan(Path::new("nowhere.csv"), "random", None),
            &Part::default(),
        )
        .unwrap_err();
        assert!(missing.0.contains("cannot be read"), "{missing}");
    }
}
