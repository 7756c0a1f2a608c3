//! Refuses scenarios that cannot be run. What is inside placeholders is checked when they are compiled.

use super::{PlanError, check_think, within};
use crate::plan::{PathForm, Plan, Scenario, Step};

const MAX_STEPS: usize = 1_000;
const MAX_LOOPS: u32 = 1_000_000_000;
/// Servers of one load, the target among them.
const MAX_TARGETS: usize = 64;
/// More are a circle.
const MAX_REDIRECTS: u32 = 100;
/// One bit for each while a body streams by.
const MAX_TEXTS: usize = 64;

pub fn check(plan: &Plan) -> Result<(), PlanError> {
    refuse_if! {
        plan.scenarios.is_empty() => "scenarios is empty, expected at least one scenario";
    }
    for (place, scenario) in plan.scenarios.iter().enumerate() {
        check_scenario(scenario)?;
        let name = &scenario.name;
        refuse_if! {
            plan.scenarios[..place].iter().any(|other| other.name == *name) =>
                "scenarios holds two named {name:?}, expected different names";
        }
    }
    let steps: usize = plan
        .scenarios
        .iter()
        .map(|scenario| scenario.requests().len())
        .sum();
    refuse_if! {
        steps > MAX_STEPS => "scenarios hold {steps} steps together, expected at most {MAX_STEPS}";
    }
    check_targets(plan)?;
    check_cookies(plan)?;
    for (place, feeder) in plan.feeders.iter().enumerate() {
        let name = &feeder.name;
        refuse_if! {
            name.is_empty() || name.contains(['.', ' ', '|', '}']) =>
                "feeders holds one named {name:?}, expected a name without dots, blanks, | and }}";
            plan.feeders[..place].iter().any(|other| other.name == *name) =>
                "feeders holds two named {name:?}, expected different names";
        }
    }
    Ok(())
}

fn check_targets(plan: &Plan) -> Result<(), PlanError> {
    let others = plan.other_targets.len();
    refuse_if! {
        others >= MAX_TARGETS => "other_targets holds {others}, expected fewer than {MAX_TARGETS}";
    }
    for step in plan.scenarios.iter().flat_map(Scenario::requests) {
        check_target(step.target, others, &format!("the step {}", step.path))?;
    }
    if others == 0 {
        return Ok(());
    }
    refuse_if! {
        plan.target.url.starts_with("unix:") =>
            "other_targets is set, but target.url is a Unix socket: expected host and port of each server";
        plan.connection.pipeline > 1 =>
            "other_targets is set, but connection.pipeline is above 1: what goes out together goes to one server";
        plan.script_writes() =>
            "other_targets is set, but a script writes the requests: expected one server with it";
    }
    Ok(())
}

fn check_target(target: u16, others: usize, whose: &str) -> Result<(), PlanError> {
    refuse_if! {
        usize::from(target) > others =>
            "{whose} has target {target}, expected 0 or the number of one of the {others} other_targets";
    }
    Ok(())
}

fn check_cookies(plan: &Plan) -> Result<(), PlanError> {
    for cookie in plan.cookies.iter().flat_map(|cookies| &cookies.given) {
        let name = &cookie.name;
        check_target(
            cookie.target,
            plan.other_targets.len(),
            &format!("the cookie {name:?}"),
        )?;
        let breaks = |text: &str| {
            text.bytes()
                .any(|byte| byte < b' ' || byte == b';' || byte == 0x7f)
        };
        refuse_if! {
            name.is_empty() || breaks(name) || name.contains('=') || breaks(&cookie.value) =>
                "cookies.given holds {name:?}, expected a name and a value without semicolons and line breaks";
            !cookie.path.starts_with('/') =>
                "cookies.given: the path of {name:?} is {:?}, expected it to begin with /", cookie.path;
        }
    }
    Ok(())
}

fn check_scenario(scenario: &Scenario) -> Result<(), PlanError> {
    let name = &scenario.name;
    refuse_if! {
        scenario.requests().is_empty() =>
            "scenario {name:?} has no steps that send a request, expected at least one";
        !(scenario.weight.is_finite() && scenario.weight > 0.0) =>
            "scenario {name:?} has the weight {}, expected a number above 0", scenario.weight;
        !(1..=MAX_LOOPS).contains(&scenario.loops) =>
            "scenario {name:?} has loops {}, expected 1 to {MAX_LOOPS}", scenario.loops;
    }
    for (place, step) in scenario.requests().into_iter().enumerate() {
        check_step(step).map_err(|error| {
            PlanError(format!("scenario {name:?}, step {}: {error}", place + 1))
        })?;
    }
    Ok(())
}

fn check_step(step: &Step) -> Result<(), PlanError> {
    refuse_if! {
        step.method.is_empty() || !step.method.bytes().all(is_token_byte) =>
            "method is {:?}, expected a word such as GET", step.method;
        step.method == "CONNECT" => "method is CONNECT, which asks for a tunnel: expected another";
    }
    let path = without_placeholders(&step.path);
    // The whole URL is what a proxy is asked for.
    refuse_if! {
        !path.starts_with('/') && !path.starts_with("http://") && path != "*" =>
            "path is {:?}, expected it to begin with /", step.path;
    }
    let blank = |byte: u8| matches!(byte, b' ' | b'\t') && step.path_as == PathForm::Verbatim;
    refuse_if! {
        path.bytes().any(|byte| (byte <= b' ' || byte == 0x7f) && !blank(byte)) =>
            "path is {:?}, expected no blanks or control characters: encode them as %20 and the like", step.path;
    }
    for (name, value) in &step.headers {
        refuse_if! {
            name.is_empty() || !name.bytes().all(is_token_byte) =>
                "header name is {name:?}, expected letters, digits and dashes";
            value.bytes().any(|byte| byte == b'\r' || byte == b'\n' || byte == 0) =>
                "header {name} has a line break in its value, expected one line";
        }
    }
    within("repeat", step.repeat, 1..=MAX_LOOPS)?;
    refuse_if! {
        step.follow_redirects > MAX_REDIRECTS =>
            "follow_redirects is {}, expected at most {MAX_REDIRECTS}", step.follow_redirects;
        step.follow_redirects > 0 && !path.starts_with('/') =>
            "follow_redirects is set and path is {:?}, expected it to begin with /", step.path;
    }
    if let Some(think) = &step.think {
        check_think("think", think)?;
    }
    if let Some(think) = &step.think_before {
        check_think("think_before", think)?;
    }
    check_expectation(step)
}

fn check_expectation(step: &Step) -> Result<(), PlanError> {
    let expect = &step.expect;
    for (name, codes) in [
        ("status", &expect.status),
        ("not_status", &expect.not_status),
    ] {
        if let Some(code) = codes.iter().find(|code| !(200..=599).contains(*code)) {
            refuse! { "expect.{name} holds {code}, expected codes from 200 to 599" }
        }
    }
    for (name, texts) in [
        ("body_contains", &expect.body_contains),
        ("body_not_contains", &expect.body_not_contains),
    ] {
        refuse_if! {
            texts.iter().any(String::is_empty) =>
                "expect.{name} holds an empty text, expected at least one character";
        }
    }
    let texts = expect.body_contains.len() + expect.body_not_contains.len();
    let (fewest, most) = (
        expect.min_bytes.unwrap_or(0),
        expect.max_bytes.unwrap_or(u64::MAX),
    );
    refuse_if! {
        texts > MAX_TEXTS =>
            "expect.body_contains and body_not_contains hold {texts} texts, expected at most {MAX_TEXTS}";
        fewest > most =>
            "expect.min_bytes is {fewest} and max_bytes {most}, expected no more than that";
        expect.body_bytes.is_some() && (expect.min_bytes.is_some() || expect.max_bytes.is_some()) =>
            "expect has body_bytes beside min_bytes or max_bytes, expected one length or its bounds";
    }
    if let Some(max_ms) = expect.max_ms.filter(|ms| !(ms.is_finite() && *ms > 0.0)) {
        refuse! { "expect.max_ms is {max_ms}, expected a number above 0" }
    }
    Ok(())
}

/// The text with a letter in place of every placeholder.
fn without_placeholders(text: &str) -> String {
    let text = text.replace("$${", "x{");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("${")
        && let Some((_, behind)) = after.split_once('}')
    {
        plain.push_str(before);
        plain.push('x');
        rest = behind;
    }
    plain + rest
}

/// A `tchar` of RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_left_out_of_the_check() {
        for (text, plain) in [
            ("/a/${random int 1 2}?b=${id}", "/a/x?b=x"),
            ("/a", "/a"),
            ("/$${a b}", "/x{a b}"),
            ("/${never closed", "/${never closed"),
        ] {
            assert_eq!(without_placeholders(text), plain);
        }
    }
}
