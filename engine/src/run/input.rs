//! Stdin: the plan on the first line, commands on later ones, and the end of stdin as the order to stop.

use std::io::{self, BufRead};
use std::sync::mpsc::Sender;

use super::Message;
use crate::check::PlanError;
use crate::plan::Command;

#[derive(Debug)]
pub enum Input {
    Command(Command),
    /// A line that is no command, with what is wrong about it.
    Unreadable(String),
    Closed,
}

/// Waits for the plan.
pub fn first_line() -> Result<String, PlanError> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(_) => Ok(line),
        Err(error) => Err(PlanError(format!(
            "the plan cannot be read from stdin: {error}"
        ))),
    }
}

/// Reads commands until stdin closes.
pub fn start(sender: Sender<Message>) {
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if line.trim().is_empty() {
                continue;
            }
            let input = match serde_json::from_str(&line) {
                Ok(command) => Input::Command(command),
                Err(error) => {
                    Input::Unreadable(format!("a line on stdin is no command: {error}: {line}"))
                }
            };
            if sender.send(Message::Input(input)).is_err() {
                return;
            }
        }
        // The coordinator may have ended by itself; then nobody needs to hear it.
        let _ = sender.send(Message::Input(Input::Closed));
    });
}
