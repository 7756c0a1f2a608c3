use super::*;
use proptest::prelude::*;
use serde_json::json;

fn listed(asked: serde_json::Value, kind: &str, path: &str, body: &[u8]) -> Vec<String> {
    let origin = TargetOrigin {
        secure: false,
        authority: "h:8080".to_owned(),
    };
    let resources = Resources::compile(&serde_json::from_value(asked).unwrap(), &origin).unwrap();
    let mut seen = CapturedResponse::new(true);
    seen.begin(format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n").as_bytes());
    seen.feed(body);
    serde_json::from_slice(&resources.list(&seen, path.as_bytes())).unwrap()
}

fn html(body: &str) -> Vec<String> {
    listed(
        json!({"into": "a"}),
        "text/html; charset=utf-8",
        "/shop/index.html?x=1",
        body.as_bytes(),
    )
}

#[test]
fn tags_name_what_a_page_embeds() {
    for (body, path) in [
        ("<img src=a.png>", "shop/a.png"),
        ("<IMG SRC='/a.png?x=1&amp;y=2#part'>", "a.png?x=1&y=2"),
        (
            "<script src=//h:8080/a.js>document.write('<img src=b>')</script>",
            "a.js",
        ),
        ("<link rel=Stylesheet href=\" a.css\n\">", "shop/a.css"),
        (
            "<link rel='shortcut icon' href=favicon.ico>",
            "shop/favicon.ico",
        ),
        ("<body background=../b.gif>", "b.gif"),
        ("<td background=b.gif>", "shop/b.gif"),
        ("<input type=IMAGE src=c.png>", "shop/c.png"),
        ("<iframe src=f.html><img src=x.png></iframe>", "shop/f.html"),
        ("<embed src=e.swf><a href=no.html>", "shop/e.swf"),
        ("<applet code=A.class codebase=lib>", "shop/lib/A.class"),
        ("<p style=\"background: URL( 'p.png' )\">", "shop/p.png"),
        ("<img src='a b|c.png'>", "shop/a%20b%7Cc.png"),
        ("<img src='&#x41;&#66;&no;.png'>", "shop/AB&no;.png"),
        ("<IMG\n\tSRC = a.png/ alt>", "shop/a.png/"),
        ("<img src=\"a>b.png\"/>", "shop/a%3Eb.png"),
        ("<!--><img src=a.png>", "shop/a.png"),
        ("1 < 2 <3 <?php <b> ?><img src=a.png>", "shop/a.png"),
        (
            "<script>if (a<b) '<img src=no>'</SCRIPT ><img src=a.png>",
            "shop/a.png",
        ),
        ("<title><img src=no></title><img src=a.png>", "shop/a.png"),
        ("<style><img src=no></style><img src=a.png>", "shop/a.png"),
    ] {
        assert_eq!(html(body), [path], "{body}");
    }
}

#[test]
fn what_is_elsewhere_or_nowhere_is_left_out() {
    for body in [
        "<img src=http://other:8080/a.png>",
        "<img src=http://h/a.png>",
        "<img src=https://h:8080/a.png>",
        "<img src='data:image/gif;base64,R0lGOD'>",
        "<img src=''><img src=' '><img>",
        "<link rel=next href=a.html>",
        "<input type=text src=a.png>",
        "<!-- <img src=a.png> -->",
        "<noscript><img src=a.png></noscript>",
        "<script>never ended <img src=a.png>",
        "<img src=a.png",
        "<img src='a.png>",
        "<p style='background: url(bare.png)'>",
    ] {
        assert_eq!(html(body), [""; 0], "{body}");
    }
}

#[test]
fn each_comes_once_in_the_order_of_the_page_and_a_base_holds_from_there() {
    let body = "<img src=b><img src=a><img src=b><base href=/other/><img src=b><img src=/shop/a>";
    assert_eq!(html(body), ["shop/b", "shop/a", "other/b"]);
    assert_eq!(
        html("<img src=s.svg#a><img src=s.svg#b>"),
        ["shop/s.svg"; 2]
    );
}

#[test]
fn style_sheets_import_others() {
    let body = b"@charset \"utf-8\"; /* ; */ @import 'a.css'; @IMPORT url(b.css) print;\n@import url( \"/c.css\" );\
                 p { background: url(no.png) } @import 'late.css';";
    let asked = json!({"into": "a"});
    let found = listed(asked.clone(), "text/css", "/css/main.css", body);
    assert_eq!(found, ["css/a.css", "css/b.css", "c.css"]);
    assert_eq!(
        listed(asked.clone(), "image/png", "/", b"<img src=a>"),
        [""; 0]
    );
    assert_eq!(
        listed(asked, "application/xhtml+xml", "/", b"<img src=a />"),
        ["a"]
    );
}

#[test]
fn patterns_are_held_against_the_whole_url() {
    let body = b"<img src=a.png><img src=b.gif><img src=c.png>";
    let asked = json!({"into": "a", "matching": "^http://h:8080/.*[.]png$", "not_matching": "c"});
    assert_eq!(listed(asked, "text/html", "/", body), ["a.png"]);
    let wrong = json!({"into": "a", "matching": "("});
    let plan = serde_json::from_value(wrong).unwrap();
    let why = Resources::compile(&plan, &TargetOrigin::default()).unwrap_err();
    assert!(
        why.starts_with("resources has a regex that cannot be read"),
        "{why}"
    );
}

#[test]
fn an_error_page_embeds_nothing() {
    let plan = serde_json::from_value(json!({"into": "a"})).unwrap();
    let origin = TargetOrigin {
        secure: false,
        authority: "h".to_owned(),
    };
    let resources = Resources::compile(&plan, &origin).unwrap();
    let mut seen = CapturedResponse::new(true);
    seen.begin(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n");
    seen.feed(b"<img src=a>");
    assert_eq!(resources.list(&seen, b"/"), b"[]");
}

proptest! {
    /// Whatever a server sends, what comes of it is a JSON list of paths in one word.
    #[test]
    fn any_body_is_a_list_of_paths(
        body in proptest::collection::vec(any::<u8>(), 0..80), tag in "<(img src|link rel=icon href|base href)=[^>]{0,12}>",
        style in any::<bool>(),
    ) {
        let kind = if style { "text/css" } else { "text/html" };
        let all = [&body[..], tag.as_bytes(), b"@import '", &body[..], b"';"].concat();
        for path in listed(json!({"into": "a"}), kind, "/x", &all) {
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{}", path);
        }
    }
}
