//! Pages with what they embed: asked for one after the other by the user who has asked for the
//! page, on the same connection.

mod run_support;

use std::sync::{Arc, Mutex};

use run_support::{Server, assert_counts, drivers, plan, run};
use serde_json::{Value, json};

type Paths = Arc<Mutex<Vec<String>>>;

/// A server that keeps the paths that it is asked for. Its page embeds a style sheet, which imports
/// another, and two pictures, one of which is elsewhere.
fn site() -> (Server, Paths) {
    let paths = Paths::default();
    let kept = Arc::clone(&paths);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let (kind, body) = match path.as_str() {
                "/shop/page" => (
                    "text/html",
                    "<link rel=stylesheet href=a.css><img src=//elsewhere/x.png><img src=/b.png?q=1>",
                ),
                "/shop/a.css" => ("text/css", "@import 'more.css';"),
                "/old" => ("", ""),
                _ => ("image/png", "<img src=never.png>"),
            };
            kept.lock().unwrap().push(path.clone());
            peer.send(&match path.as_str() {
                "/old" => "HTTP/1.1 302 Found\r\nLocation: /shop/page\r\nContent-Length: 0\r\n\r\n"
                    .to_owned(),
                "/lost" => "nonsense\r\n\r\n".to_owned(),
                _ => format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ),
            });
        }
    });
    (server, paths)
}

fn each(list: &str, into: Option<&str>, inside: &Value) -> Value {
    let mut step = json!({"name": "embedded", "path": format!("/${{{list}_it}}")});
    if let Some(into) = into {
        step["resources"] = json!({"into": into});
    }
    let mut steps = vec![step];
    steps.extend(inside.as_array().unwrap().clone());
    json!({"loop": {"each": list, "as": format!("{list}_it")}, "steps": steps})
}

fn asked(path: &str, follows: u32) -> Vec<String> {
    let mut all = Vec::new();
    for driver in drivers() {
        let (server, paths) = site();
        let plan = plan(server.address, driver, |plan| {
            let page = json!({"name": "page", "path": path, "follow_redirects": follows,
                "resources": {"into": "page"}});
            let inner = json!([each("sheet", None, &json!([]))]);
            plan["scenarios"] =
                json!([{"steps": [page, each("page", Some("sheet"), &inner), {"path": "/end"}]}]);
            plan["stop"]["iterations_per_user"] = 2.into();
        });
        run(&plan).finished();
        let found = paths.lock().unwrap().clone();
        assert!(all.is_empty() || all == found, "{driver}: {found:?}");
        all = found;
    }
    all
}

#[test]
fn what_a_page_embeds_is_asked_for_after_it() {
    let once = [
        "/shop/page",
        "/shop/a.css",
        "/shop/more.css",
        "/b.png?q=1",
        "/end",
    ];
    assert_eq!(asked("/shop/page", 0), [once, once].concat());
}

#[test]
fn behind_a_redirect_the_page_is_where_it_led_to() {
    let once = [
        "/old",
        "/shop/page",
        "/shop/a.css",
        "/shop/more.css",
        "/b.png?q=1",
        "/end",
    ];
    assert_eq!(asked("/old", 5), [once, once].concat());
}

#[test]
fn a_page_that_does_not_come_embeds_nothing() {
    assert_eq!(asked("/lost", 0), ["/lost", "/end", "/lost", "/end"]);
    assert_eq!(asked("/old", 0), ["/old", "/end", "/old", "/end"]);
}

#[test]
fn they_are_requests_like_others_in_the_figures() {
    for driver in drivers() {
        let (server, _) = site();
        let plan = plan(server.address, driver, |plan| {
            let page = json!({"name": "page", "path": "/shop/page", "resources": {"into": "page", "not_matching": "css"}});
            plan["scenarios"] = json!([{"steps": [page, each("page", None, &json!([]))]}]);
            plan["stop"]["iterations_per_user"] = 3.into();
        });
        let ended = run(&plan);
        let finished = ended.finished();
        assert_counts(
            &finished["totals"],
            &json!({"completed": 6, "failed": 0, "connections_opened": 1}),
        );
        let steps = finished["window"]["steps"].as_array().unwrap();
        let counts: Vec<&Value> = steps.iter().map(|step| &step["completed"]).collect();
        assert_eq!(counts, [3, 3]);
    }
}

#[test]
fn a_name_or_a_pattern_that_is_none_is_refused() {
    for (resources, words) in [
        (json!({"into": "a b"}), "a b"),
        (
            json!({"into": "a", "matching": "("}),
            "resources has a regex",
        ),
    ] {
        let plan = plan("127.0.0.1:1".parse().unwrap(), "epoll", |plan| {
            plan["scenarios"] = json!([{"steps": [{"path": "/", "resources": resources}]}]);
            plan["stop"]["total_requests"] = 1.into();
        });
        let ended = run(&plan);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}
