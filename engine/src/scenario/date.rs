//! `${date …}`: the wall clock as a date, in a format of the plan and at an offset from UTC.

use std::time::SystemTime;

use time::format_description::{self, OwnedFormatItem};
use time::{Duration, OffsetDateTime, UtcOffset};

/// A thousand years in either direction.
const LONGEST_SHIFT_S: i64 = 1_000 * 366 * 86_400;

/// How a date is written, and which.
#[derive(Debug, Clone)]
pub struct DateFormat {
    /// As in the plan.
    words: Box<str>,
    format: OwnedFormatItem,
    offset: UtcOffset,
    shift: Duration,
}

impl PartialEq for DateFormat {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for DateFormat {}

impl DateFormat {
    /// The words behind `date`: perhaps `offset_s=N` and `shift_s=N`, then the format.
    pub fn compile(words: &str) -> Result<Self, String> {
        let (mut offset, mut shift) = (UtcOffset::UTC, Duration::ZERO);
        let mut rest = words.trim();
        loop {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let seconds = |value: &str| {
                let number: Option<i64> = value.parse().ok();
                number.ok_or_else(|| format!("has {word:?}, expected a whole number of seconds"))
            };
            if let Some(value) = word.strip_prefix("offset_s=") {
                let found = i32::try_from(seconds(value)?).ok();
                let found = found.filter(|found| found.abs() < 86_400);
                let found = found.and_then(|found| UtcOffset::from_whole_seconds(found).ok());
                offset = found.ok_or_else(|| format!("has {word:?}, expected less than a day"))?;
            } else if let Some(value) = word.strip_prefix("shift_s=") {
                let found = seconds(value)?;
                refuse_if! {
                    !(-LONGEST_SHIFT_S..=LONGEST_SHIFT_S).contains(&found) =>
                        "has {word:?}, expected at most a thousand years";
                }
                shift = Duration::seconds(found);
            } else {
                break;
            }
            rest = after.trim_start();
        }
        refuse_if! {
            rest.is_empty() =>
                "has no format, expected one such as [year]-[month]-[day]T[hour]:[minute]:[second]";
        }
        let format = format_description::parse_owned::<2>(rest)
            .map_err(|error| format!("has the format {rest:?}, which cannot be read: {error}"))?;
        let made = Self {
            words: words.trim().into(),
            format,
            offset,
            shift,
        };
        // Some parts that can be read belong to no date and time.
        let mut out = Vec::new();
        refuse_if! {
            !made.render(SystemTime::UNIX_EPOCH, &mut out) =>
                "has the format {rest:?}, expected parts of a date and a time";
        }
        Ok(made)
    }

    /// Appends the date at that time; whether it could be written.
    pub fn render(&self, now: SystemTime, out: &mut Vec<u8>) -> bool {
        OffsetDateTime::from(now)
            .saturating_add(self.shift)
            .to_offset(self.offset)
            .format_into(out, &self.format)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-02-28 23:59:58.007 UTC.
    fn at(words: &str) -> Result<String, String> {
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_709_164_798_007);
        let mut out = Vec::new();
        DateFormat::compile(words).map(|format| {
            assert!(format.render(now, &mut out));
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn dates_are_written_as_the_format_says() {
        for (words, expected) in [
            (
                "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]",
                "2024-02-28T23:59:58.007",
            ),
            (
                "offset_s=3600 [year]-[month]-[day] [hour]:[minute]",
                "2024-02-29 00:59",
            ),
            (
                "shift_s=-86400 [day padding:none]/[month padding:none]/[year repr:last_two]",
                "27/2/24",
            ),
            (
                "offset_s=-12600 shift_s=172800 [weekday repr:short], [day] [month repr:short]",
                "Fri, 01 Mar",
            ),
            (
                "offset_s=19800 [hour repr:12][period] [offset_hour sign:mandatory]:[offset_minute]",
                "05AM +05:30",
            ),
            (
                "shift_s=1 [unix_timestamp precision:millisecond]",
                "1709164799007",
            ),
        ] {
            assert_eq!(at(words).unwrap(), expected, "{words}");
        }
    }

    #[test]
    fn what_is_no_format_is_refused() {
        for (words, part) in [
            ("", "has no format"),
            ("shift_s=60", "has no format"),
            ("shift_s=x [year]", "whole number of seconds"),
            ("offset_s=90000 [year]", "less than a day"),
            ("shift_s=99999999999 [year]", "a thousand years"),
            ("[yeer]", "cannot be read"),
            ("[year", "cannot be read"),
        ] {
            let error = at(words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
