//! A server that keeps every request, and answers by a function of it.

use std::sync::{Arc, Mutex};

use super::Server;

pub type Requests = Arc<Mutex<Vec<String>>>;

pub fn recording(response: impl Fn(&str) -> String + Send + Sync + 'static) -> (Server, Requests) {
    let requests = Requests::default();
    let kept = Arc::clone(&requests);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let text = response(&request);
            kept.lock().unwrap().push(request);
            peer.send(&text);
        }
    });
    (server, requests)
}

pub fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub fn paths(requests: &Requests) -> Vec<String> {
    let path = |request: &String| request.split(' ').nth(1).unwrap().to_owned();
    requests.lock().unwrap().iter().map(path).collect()
}
