//! Reads the value of a `Set-Cookie` header (RFC 6265, section 5.2) and the dates in it (section 5.1.1).
//! Bytes in, values out: what becomes of the cookie is the jar's.

use std::num::IntErrorKind;

use time::{Date, Month, PrimitiveDateTime, Time};

/// What one header sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SetCookie<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// As it was written, without a first dot; `None`: the cookie is for the host alone.
    pub domain: Option<&'a [u8]>,
    /// `None`: the directory of what was requested.
    pub path: Option<&'a [u8]>,
    pub secure: bool,
    pub max_age_s: Option<i64>,
    pub expires_unix_s: Option<i64>,
}

impl<'a> SetCookie<'a> {
    /// `None` for what sets no cookie.
    pub fn read(header: &'a [u8]) -> Option<Self> {
        let mut parts = header.split(|byte| *byte == b';');
        let (name, value) = pair(parts.next()?);
        let mut cookie = Self {
            name,
            value: value?,
            ..Self::default()
        };
        if name.is_empty() {
            return None;
        }
        for part in parts {
            cookie.take(pair(part));
        }
        Some(cookie)
    }

    /// The last attribute of a name counts.
    fn take(&mut self, (name, value): (&'a [u8], Option<&'a [u8]>)) {
        let value = value.unwrap_or_default();
        match name.to_ascii_lowercase().as_slice() {
            b"expires" => self.expires_unix_s = unix_s(value).or(self.expires_unix_s),
            b"max-age" => self.max_age_s = seconds(value).or(self.max_age_s),
            b"domain" if !value.is_empty() => {
                let domain = value.strip_prefix(b".").unwrap_or(value);
                self.domain = (!domain.is_empty()).then_some(domain);
            }
            b"path" => self.path = value.starts_with(b"/").then_some(value),
            b"secure" => self.secure = true,
            _ => {}
        }
    }
}

/// Name and value, without the blanks around them; no value without a `=`.
fn pair(part: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', part) {
        Some(at) => (part[..at].trim_ascii(), Some(part[at + 1..].trim_ascii())),
        None => (part.trim_ascii(), None),
    }
}

/// Whole seconds; what is beyond all numbers is their end.
fn seconds(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let number = text.parse::<i64>().or_else(|error| match error.kind() {
        IntErrorKind::PosOverflow => Ok(i64::MAX),
        IntErrorKind::NegOverflow => Ok(i64::MIN),
        _ => Err(error),
    });
    number.ok().filter(|_| !text.starts_with('+'))
}

/// A date as servers write it, in seconds since 1970.
pub fn unix_s(text: &[u8]) -> Option<i64> {
    let (mut clock, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|byte| is_delimiter(*byte)) {
        let found = clock.is_none() && set(&mut clock, clock_of(token))
            || day.is_none() && set(&mut day, number(token, 1..=2))
            || month.is_none() && set(&mut month, month_of(token))
            || year.is_none() && set(&mut year, number(token, 2..=4));
        // Anything else says nothing: a day of the week, a zone.
        let _ = found;
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year if year < 1601 => return None,
        year => year,
    };
    let (hour, minute, second) = clock?;
    let date = Date::from_calendar_date(year.into(), month?, day?.try_into().ok()?).ok()?;
    let time = Time::from_hms(hour, minute, second).ok()?;
    Some(
        PrimitiveDateTime::new(date, time)
            .assume_utc()
            .unix_timestamp(),
    )
}

fn set<T>(place: &mut Option<T>, found: Option<T>) -> bool {
    *place = found;
    place.is_some()
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// So many digits at the start, and no more of them.
fn number(token: &[u8], digits: std::ops::RangeInclusive<usize>) -> Option<u16> {
    let count = token
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !digits.contains(&count) {
        return None;
    }
    std::str::from_utf8(&token[..count]).ok()?.parse().ok()
}

fn clock_of(token: &[u8]) -> Option<(u8, u8, u8)> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let mut whole = || {
        let part = parts.next()?;
        (part.len() <= 2).then(|| number(part, 1..=2))?
    };
    let (hour, minute) = (whole()?, whole()?);
    let second = number(parts.next()?, 1..=2)?;
    Some((hour as u8, minute as u8, second as u8))
}

fn month_of(token: &[u8]) -> Option<Month> {
    let word = token.get(..3)?;
    let is = |month: &Month| month.to_string().as_bytes()[..3].eq_ignore_ascii_case(word);
    (1..=12)
        .filter_map(|number| Month::try_from(number).ok())
        .find(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cookie_and_its_attributes_are_read() {
        let read = SetCookie::read(
            b" id = \"a=b\" ;Path=/x; path=/y ;DOMAIN=.Shop.Example; secure=yes;Max-Age=-5;HttpOnly;q",
        );
        let expected = SetCookie {
            name: b"id",
            value: b"\"a=b\"",
            domain: Some(b"Shop.Example"),
            path: Some(b"/y"),
            secure: true,
            max_age_s: Some(-5),
            expires_unix_s: None,
        };
        assert_eq!(read.unwrap(), expected);
        let bare = SetCookie::read(b"a=; Path=x; Domain=; Max-Age=1s; Expires=never").unwrap();
        let expected = SetCookie {
            name: b"a",
            ..SetCookie::default()
        };
        assert_eq!(bare, expected);
        for none in ["", "a", "=b", " ; a=b", "\t=\t"] {
            assert_eq!(SetCookie::read(none.as_bytes()), None, "{none}");
        }
        let last = SetCookie::read(b"a=1; Path=/x; Path=").unwrap();
        assert_eq!(last.path, None);
        let huge = SetCookie::read(b"a=1; Max-Age=99999999999999999999").unwrap();
        assert_eq!(huge.max_age_s, Some(i64::MAX));
    }

    #[test]
    fn dates_are_read_in_every_form_that_servers_write() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "6 nov 1994 8:49:37",
            "1994 November 06 08:49:37GMT",
            "08:49:37 6-NOVEMBER-94",
            "Sun/06/Nov/1994/08:49:37",
            "6th Nov 1994 08:49:37.5 x",
        ] {
            assert_eq!(unix_s(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(unix_s(b"Thu, 01 Jan 70 0:0:0"), Some(0));
        assert_eq!(unix_s(b"Tue, 19 Jan 2038 03:14:08 GMT"), Some(1 << 31));
        assert_eq!(unix_s(b"1 Jan 69 00:00:00"), Some(3_124_224_000));
        for wrong in [
            "",
            "Sun, 06 Nov 1994",
            "06 Nov 1994 24:00:00",
            "06 Nov 1994 08:60:00",
            "06 Nov 1994 08:49:60",
            "06 Nov 1994 008:49:37",
            "31 Feb 1994 08:49:37",
            "0 Nov 1994 08:49:37",
            "32 Nov 1994 08:49:37",
            "06 Nov 1600 08:49:37",
            "06 Nov 19940 08:49:37",
            "06 Nuv 1994 08:49:37",
            "06 Nov 08:49:37",
            "784111777",
        ] {
            assert_eq!(unix_s(wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_date_means_the_same_in_all_forms(
            year in 1970i32..2070, month in 1u8..=12, day in 1u8..=28,
            (hour, minute, second) in (0u8..24, 0u8..60, 0u8..60),
        ) {
            let month = Month::try_from(month).unwrap();
            let date = Date::from_calendar_date(year, month, day).unwrap();
            let time = Time::from_hms(hour, minute, second).unwrap();
            let expected = PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp();
            let (week, short) = (date.weekday().to_string(), month.to_string()[..3].to_owned());
            let clock = format!("{hour:02}:{minute:02}:{second:02}");
            for text in [
                format!("{}, {day:02} {short} {year} {clock} GMT", &week[..3]),
                format!("{week}, {day:02}-{short}-{:02} {clock} GMT", year % 100),
                format!("{} {short} {day:2} {clock} {year}", &week[..3]),
                format!("{year} {day} {month} {hour}:{minute}:{second}"),
            ] {
                prop_assert_eq!(unix_s(text.as_bytes()), Some(expected), "{}", text);
            }
        }

        #[test]
        fn no_bytes_make_it_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(cookie) = SetCookie::read(&bytes) {
                prop_assert!(!cookie.name.is_empty());
                prop_assert!(!cookie.name.contains(&b';') && !cookie.value.contains(&b';'));
            }
            let _ = unix_s(&bytes);
        }
    }
}
