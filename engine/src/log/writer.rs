//! The file of the request log and the thread that writes it.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};

use schemars::JsonSchema;
use serde::Serialize;

use super::{COLUMNS, Costs, LogMessage, Row, target_of};
use crate::measure::counters::ErrorKind;
use crate::net::sys::thread_cpu_ns;
use crate::plan::Plan;
use crate::refusal::{PlanError, refuse};
use crate::units::seconds;

const BUFFER_BYTES: usize = 256 * 1024;

/// What became of the request log, and what it cost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogReport {
    pub path: String,
    /// Requests and notes in the file.
    pub rows: u64,
    pub bytes: u64,
    /// Requests that are not in it: 0, unless it could not be written.
    pub rows_lost: u64,
    /// Why it could not be written.
    pub error: Option<String>,
    /// How long the measuring threads waited for the writer.
    pub waited_s: f64,
    /// CPU time of the thread that wrote it, which is not part of the measuring threads' figures.
    pub writer_cpu_s: f64,
}

/// What is the same in all rows of a step.
#[derive(Debug)]
struct StepCells {
    scenario: String,
    name: String,
    /// Within its scenario, from 0.
    index: usize,
    method: String,
    path: Box<str>,
}

/// A file that counts what it took.
#[derive(Debug)]
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.file.write(bytes)?;
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The file of a request log, and what it takes to write its rows.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    csv: csv::Writer<Counted>,
    inbox: Receiver<LogMessage>,
    costs: Arc<Costs>,
    steps: Vec<StepCells>,
    hides: Vec<String>,
    rows: u64,
    error: Option<String>,
}

/// The text with a mark where it holds one of these.
fn hidden<'a>(text: &'a str, hides: &[String]) -> Cow<'a, str> {
    let mut shown = Cow::Borrowed(text);
    for hide in hides {
        if !hide.is_empty() && shown.contains(hide.as_str()) {
            shown = Cow::Owned(shown.replace(hide.as_str(), "REDACTED"));
        }
    }
    shown
}

/// As in the counters.
fn name_of(kind: ErrorKind) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// When the run started.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    pub unix_ns: u64,
    pub monotonic_ns: u64,
}

impl LogFile {
    pub(super) fn create(
        path: &Path,
        plan: &Plan,
        fixed: &[Option<&[u8]>],
        inbox: Receiver<LogMessage>,
        costs: Arc<Costs>,
    ) -> Result<Self, PlanError> {
        let cannot = |error: &dyn std::fmt::Display| {
            refuse(format!(
                "log is {}, which cannot be written: {error}",
                path.display()
            ))
        };
        // What was sent is its owner's to read.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) => return cannot(&error),
        };
        let mut csv = csv::WriterBuilder::new()
            .buffer_capacity(BUFFER_BYTES)
            .from_writer(Counted { file, bytes: 0 });
        if let Err(error) = csv.write_record(COLUMNS) {
            return cannot(&error);
        }
        let hides = &plan.log_hides;
        let all = plan.scenarios.iter().flat_map(|scenario| {
            let steps = scenario.requests().into_iter().enumerate();
            steps.map(move |(index, step)| (scenario, index, step))
        });
        let steps = all.zip(fixed).map(|((scenario, index, step), fixed)| {
            let name = step.name.clone();
            StepCells {
                scenario: scenario.name.clone(),
                name: hidden(
                    &name.unwrap_or_else(|| format!("{} {}", step.method, step.path)),
                    hides,
                )
                .into_owned(),
                // Those of a script are its threads, and the plan has one.
                index: if plan.script_writes() { 0 } else { index },
                method: step.method.clone(),
                path: hidden(
                    &fixed
                        .and_then(target_of)
                        .unwrap_or_else(|| step.path.as_str().into()),
                    hides,
                )
                .into(),
            }
        });
        Ok(Self {
            path: path.to_owned(),
            csv,
            inbox,
            costs,
            steps: steps.collect(),
            hides: hides.clone(),
            rows: 0,
            error: None,
        })
    }

    /// Writes until nothing more comes. After a failure it only counts, so that no measuring thread
    /// is held up.
    pub fn write_all(mut self, started: Started) -> LogReport {
        let mut ended = false;
        while !ended {
            let message = match self.inbox.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    self.flush();
                    match self.inbox.recv() {
                        Ok(message) => message,
                        Err(_) => break,
                    }
                }
            };
            match message {
                LogMessage::Rows(thread, rows) => self.write_rows(thread, &rows, started),
                LogMessage::End => ended = true,
            }
        }
        self.flush();
        LogReport {
            path: self.path.display().to_string(),
            rows: self.rows,
            bytes: self.csv.get_ref().bytes,
            rows_lost: self.costs.lost.load(Ordering::Relaxed),
            error: self.error,
            waited_s: seconds(self.costs.waited_ns.load(Ordering::Relaxed).into()),
            writer_cpu_s: seconds(thread_cpu_ns().into()),
        }
    }

    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.csv.flush()
        {
            self.give_up(&error);
        }
    }

    /// How many rows the file took whole is not known then: all are called lost, those that follow too.
    fn give_up(&mut self, error: &dyn std::fmt::Display) {
        eprintln!(
            "prony-engine: the request log {} cannot be written: {error}; the run goes on without it",
            self.path.display()
        );
        self.error = Some(error.to_string());
        let rows = std::mem::take(&mut self.rows);
        self.costs.lost.fetch_add(rows, Ordering::Relaxed);
    }

    fn write_rows(&mut self, thread: usize, rows: &[Row], started: Started) {
        for (at, row) in rows.iter().enumerate() {
            let written = match self.error {
                None => self.write_row(row, thread, started),
                Some(_) => Ok(()),
            };
            if let Err(error) = written {
                self.give_up(&error);
            }
            if self.error.is_some() {
                let left = (rows.len() - at) as u64;
                self.costs.lost.fetch_add(left, Ordering::Relaxed);
                return;
            }
            self.rows += 1;
        }
    }

    fn write_row(&mut self, row: &Row, thread: usize, started: Started) -> csv::Result<()> {
        let step = &self.steps[usize::from(row.step)];
        let (noted, outcome) = (&row.noted, &row.outcome);
        let first_byte = noted.first_ns.map(|at| at.saturating_sub(row.start_ns));
        let csv = &mut self.csv;
        let start_ns = row.start_ns.saturating_sub(started.monotonic_ns);
        let mut number = itoa::Buffer::new();
        csv.write_field(number.format((started.unix_ns + start_ns) / 1_000_000))?;
        for value in [start_ns, row.latency_ns, row.service_ns] {
            csv.write_field(number.format(value))?;
        }
        for value in [noted.connect_ns, noted.tls_ns, first_byte] {
            csv.write_field(value.map_or("", |value| number.format(value)))?;
        }
        csv.write_field(&step.scenario)?;
        if let Some((place, _)) = &row.note {
            csv.write_field("")?;
            csv.write_field(number.format(*place))?;
            csv.write_field("")?;
            csv.write_field("")?;
        } else {
            csv.write_field(&step.name)?;
            csv.write_field(number.format(step.index))?;
            csv.write_field(noted.method.as_deref().unwrap_or(&step.method))?;
            match &noted.path {
                Some(path) => csv.write_field(&*hidden(path, &self.hides))?,
                None => csv.write_field(&*step.path)?,
            }
        }
        csv.write_field(number.format(row.user))?;
        csv.write_field(number.format(thread))?;
        csv.write_field(outcome.status.map_or("", |status| number.format(status)))?;
        csv.write_field(outcome.error.map_or_else(String::new, name_of))?;
        for value in [noted.bytes_out, noted.bytes_in, outcome.body_bytes] {
            csv.write_field(number.format(value))?;
        }
        csv.write_field(number.format(row.users))?;
        csv.write_field(row.branch.map_or("", |branch| number.format(branch)))?;
        let note = row.note.as_ref().map_or("", |(_, text)| text);
        csv.write_field(&*hidden(note, &self.hides))?;
        csv.write_record(None::<&[u8]>)
    }
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn credentials_are_replaced_wherever_they_stand() {
        let hides = ["abc123".to_owned(), String::new(), "x%20y".to_owned()];
        assert_eq!(
            hidden("/a?k=abc123&p=x%20y&k=abc123", &hides),
            "/a?k=REDACTED&p=REDACTED&k=REDACTED"
        );
        assert_eq!(hidden("/a?k=abc12", &hides), "/a?k=abc12");
        assert_eq!(hidden("/a", &[]), "/a");
    }
}
