//! Stdout: one event per line, by a thread of its own: a slow reader cannot hold up the run.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::Message;
use crate::report::Event;

/// A reader who does not take the rest of the report within this time is taken for gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way to stdout.
pub struct Output {
    lines: Sender<Line>,
    done: Receiver<bool>,
}

enum Line {
    Text(String),
    End,
}

impl Output {
    pub fn start(coordinator: Sender<Message>) -> Self {
        let (lines, inbox) = channel();
        let (done_sender, done) = channel();
        std::thread::spawn(move || {
            let written = write_lines(&inbox);
            if !written {
                let _ = coordinator.send(Message::OutputClosed);
            }
            let _ = done_sender.send(written);
        });
        Self { lines, done }
    }

    pub fn write(&self, event: &Event) {
        match serde_json::to_string(event) {
            // The writer ends only when stdout is closed, and has reported so itself.
            Ok(line) => drop(self.lines.send(Line::Text(line))),
            Err(error) => eprintln!("prony-engine: an event cannot be written: {error}"),
        }
    }

    /// Waits until everything is written; false when it could not be.
    pub fn finish(&self) -> bool {
        let _ = self.lines.send(Line::End);
        self.done.recv_timeout(PATIENCE).unwrap_or(false)
    }
}

fn write_lines(inbox: &Receiver<Line>) -> bool {
    let mut stdout = io::stdout().lock();
    while let Ok(Line::Text(mut line)) = inbox.recv() {
        line.push('\n');
        if stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.flush())
            .is_err()
        {
            return false;
        }
    }
    true
}
