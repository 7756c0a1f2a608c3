//! Stdin: the plan on the first line, commands on later lines; its end stops the run.

use std::io::{self, BufRead};
use std::sync::mpsc::Sender;

use super::Message;
use crate::plan::Command;

#[derive(Debug)]
pub enum Input {
    /// The first line, or why it cannot be read.
    Plan(Result<String, String>),
    Command(Command),
    /// A line that is no command, with what is wrong about it.
    Unreadable(String),
    Closed,
}

/// Reads stdin until it closes, in a thread of its own.
pub fn start(sender: Sender<Message>) {
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        let first = stdin.read_until(b'\n', &mut line);
        let plan = match first {
            Ok(_) => String::from_utf8(line).map_err(|error| not_utf8(error.utf8_error())),
            Err(error) => Err(error.to_string()),
        };
        let mut open = sender.send(Message::Input(Input::Plan(plan))).is_ok();
        while open {
            let mut line = Vec::new();
            let input = match stdin.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => Input::Closed,
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => command(&line),
            };
            open = !matches!(input, Input::Closed);
            // A coordinator that has ended by itself needs no more messages.
            open &= sender.send(Message::Input(input)).is_ok();
        }
    });
}

fn command(line: &[u8]) -> Input {
    let refused = |what: &str| {
        let line = String::from_utf8_lossy(line.trim_ascii());
        Input::Unreadable(format!(
            "a line on stdin was ignored: {what}; expected a command such as {{\"command\":\"stop\"}}: {line}"
        ))
    };
    match std::str::from_utf8(line) {
        Ok(text) => match Command::from_json(text) {
            Ok(command) => Input::Command(command),
            Err(error) => refused(&error.to_string()),
        },
        Err(error) => refused(&not_utf8(error)),
    }
}

fn not_utf8(error: std::str::Utf8Error) -> String {
    format!("byte {} is not UTF-8", error.valid_up_to() + 1)
}
