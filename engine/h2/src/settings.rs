//! SETTINGS (RFC 9113, section 6.5): ours written, the other side's read.

use crate::error::ConnectionError;
use crate::frame::{DEFAULT_FRAME_BYTES, DEFAULT_WINDOW_BYTES, MAX_FRAME_BYTES, MAX_WINDOW_BYTES};
use crate::hpack::DEFAULT_TABLE_BYTES;

mod id {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// What a connection is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What the other side may send on a stream before it is given more, 1 to 2^31-1.
    pub stream_window_bytes: u32,
    /// The same for all streams together; at least 65535, which no connection is without.
    pub connection_window_bytes: u32,
    /// Of the dynamic table, either way.
    pub table_bytes: u32,
    /// The longest list of header fields, as RFC 9113 counts it (section 6.5.2).
    pub max_head_bytes: u32,
}

/// What the other side allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub table_bytes: u32,
    /// `None`: any number.
    pub max_streams: Option<u32>,
    pub window_bytes: u32,
    pub frame_bytes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            table_bytes: DEFAULT_TABLE_BYTES,
            max_streams: None,
            window_bytes: DEFAULT_WINDOW_BYTES,
            frame_bytes: DEFAULT_FRAME_BYTES,
        }
    }
}

impl Settings {
    /// Applies the payload of a SETTINGS frame; what is not known is ignored.
    pub fn apply(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        if !payload.len().is_multiple_of(6) {
            return Err(ConnectionError::frame_size(
                "SETTINGS of a length that is no multiple of 6",
            ));
        }
        for pair in payload.chunks_exact(6) {
            let value = u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]);
            match u16::from_be_bytes([pair[0], pair[1]]) {
                id::HEADER_TABLE_SIZE => self.table_bytes = value,
                id::ENABLE_PUSH if value > 0 => {
                    return Err(ConnectionError::protocol(
                        "SETTINGS_ENABLE_PUSH that is not 0",
                    ));
                }
                id::MAX_CONCURRENT_STREAMS => self.max_streams = Some(value),
                id::INITIAL_WINDOW_SIZE if value > MAX_WINDOW_BYTES => {
                    return Err(ConnectionError::flow_control(
                        "SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1",
                    ));
                }
                id::INITIAL_WINDOW_SIZE => self.window_bytes = value,
                id::MAX_FRAME_SIZE if !(DEFAULT_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&value) => {
                    return Err(ConnectionError::protocol(
                        "SETTINGS_MAX_FRAME_SIZE out of its range",
                    ));
                }
                id::MAX_FRAME_SIZE => self.frame_bytes = value,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A client's, as the payload of a frame: no push, and what differs from the defaults.
pub fn of_client(config: &Config) -> Vec<u8> {
    let mut payload = Vec::new();
    add(id::ENABLE_PUSH, 0, &mut payload);
    add_limits(config, &mut payload);
    payload
}

fn add_limits(config: &Config, payload: &mut Vec<u8>) {
    if config.stream_window_bytes != DEFAULT_WINDOW_BYTES {
        add(id::INITIAL_WINDOW_SIZE, config.stream_window_bytes, payload);
    }
    if config.table_bytes != DEFAULT_TABLE_BYTES {
        add(id::HEADER_TABLE_SIZE, config.table_bytes, payload);
    }
    add(id::MAX_HEADER_LIST_SIZE, config.max_head_bytes, payload);
}

fn add(id: u16, value: u32, payload: &mut Vec<u8>) {
    payload.extend_from_slice(&id.to_be_bytes());
    payload.extend_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(id: u16, value: u32) -> Vec<u8> {
        [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()
    }

    #[test]
    fn known_settings_are_applied_and_others_ignored() {
        let mut settings = Settings::default();
        let payload = [
            pair(3, 7),
            pair(4, 1 << 20),
            pair(1, 0),
            pair(5, 32_768),
            pair(0x99, 5),
            pair(2, 0),
        ];
        settings.apply(&payload.concat()).unwrap();
        let expected = Settings {
            table_bytes: 0,
            max_streams: Some(7),
            window_bytes: 1 << 20,
            frame_bytes: 32_768,
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn values_out_of_their_range_are_refused_by_their_codes() {
        use crate::error::ErrorCode;
        for (payload, code) in [
            (pair(2, 1), ErrorCode::PROTOCOL_ERROR),
            (pair(4, 1 << 31), ErrorCode::FLOW_CONTROL_ERROR),
            (pair(5, 16_383), ErrorCode::PROTOCOL_ERROR),
            (pair(5, 1 << 24), ErrorCode::PROTOCOL_ERROR),
            (vec![0; 5], ErrorCode::FRAME_SIZE_ERROR),
        ] {
            assert_eq!(Settings::default().apply(&payload).unwrap_err().code, code);
        }
    }
}
