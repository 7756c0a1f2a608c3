//! How requests and connections end before their time.

use super::*;

#[test]
fn a_reset_ends_one_request_and_the_connection_stays() {
    let mut test = Test::connected(2, 1, 100);
    test.sends(0);
    test.sends(1);
    test.frames(0);
    let mut bytes = Vec::new();
    frame::write_reset(1, prony_h2::ErrorCode::REFUSED_STREAM, &mut bytes);
    test.gives(0, &bytes);
    assert_eq!(
        test.events(),
        ["0 lost StreamReset RST_STREAM: REFUSED_STREAM"]
    );
    test.sends(0);
    assert_eq!(test.opened(0), [5]);
    assert_eq!(test.figures().resets_received[&7], 1);
}

#[test]
fn who_gives_up_resets_its_stream_and_the_last_one_closes_the_connection() {
    let mut test = Test::connected(2, 1, 100);
    test.sends(0);
    test.sends(1);
    test.frames(0);
    test.driver.close(0);
    assert_eq!(test.frames(0), [(kind::RST_STREAM, 1, 4)]);
    test.responds(0, 1, b"late");
    test.responds(0, 3, b"hi");
    assert_eq!(test.events(), [format!("1: {OK}")]);
    test.driver.connect(0, 0);
    assert_eq!(test.events(), ["Joined(0)"]);
    test.driver.close(0);
    assert_eq!(test.driver.wire.closed, [0; 0]);
    test.driver.close(1);
    assert_eq!(test.driver.wire.closed, [0]);
    assert_eq!(test.frames(0), [(kind::GOAWAY, 0, 8)]);
    assert_eq!(test.figures().connections.closed_by_client, 1);
}

#[test]
fn when_the_server_goes_away_what_it_took_finishes_and_the_rest_goes_elsewhere() {
    let mut test = Test::connected(4, 1, 2);
    for conn in 0..4 {
        test.sends(conn);
    }
    test.responds(0, 1, b"hi");
    assert_eq!(test.events(), [format!("0: {OK}")]);
    assert_eq!(test.opened(0), [1, 3, 5]);
    // User 0 is idle, 1 and 2 have streams 3 and 5, 3 waits.
    test.gives(0, &goaway(3));
    assert_eq!(
        test.events(),
        [
            "2 lost GoAway GOAWAY: the server did not look at the request",
            "Closed(0)",
            "Closed(2)"
        ]
    );
    assert_eq!(
        test.driver.wire.connects,
        [0, 1],
        "the next is opened for who waits"
    );
    test.driver.connect(0, 0);
    test.driver.wire.events.push_back(NetEvent::Connected(1));
    assert_eq!(test.events(), ["Connected(0)"]);
    assert_eq!(test.opened(1), [1]);
    test.responds(0, 3, b"hi");
    assert_eq!(test.events(), [format!("1: {OK}"), "Closed(1)".to_owned()]);
    assert_eq!(test.driver.wire.closed, [0]);
    test.gives(1, &settings(100));
    test.responds(1, 1, b"hi");
    assert_eq!(test.events(), [format!("3: {OK}")]);
    let figures = test.figures();
    assert_eq!(
        (
            figures.connections.opened,
            figures.connections.closed_by_server
        ),
        (2, 1)
    );
    assert_eq!(
        (figures.goaways_received[&0], figures.streams_unprocessed),
        (1, 1)
    );
}

#[test]
fn a_server_that_goes_away_before_its_first_response_is_not_asked_again() {
    let mut test = Test::connected(2, 1, 1);
    test.sends(0);
    test.sends(1);
    test.gives(0, &goaway(0));
    let events = test.events();
    assert!(
        events.contains(&"0 lost GoAway GOAWAY: the server did not look at the request".to_owned()),
        "{events:?}"
    );
    assert!(
        events.contains(&"1 lost GoAway GOAWAY: NO_ERROR".to_owned()),
        "{events:?}"
    );
    assert_eq!(test.driver.wire.connects, [0]);
}

#[test]
fn a_broken_connection_ends_what_was_on_it() {
    let mut test = Test::connected(3, 1, 1);
    test.sends(0);
    test.sends(1);
    test.driver.wire.events.push_back(NetEvent::Closed(0));
    let mut events = test.events();
    events.sort();
    assert_eq!(events, ["Closed(0)", "Closed(1)", "Closed(2)"]);
    assert_eq!(test.figures().connections.closed_by_server, 1);
    test.driver.connect(2, 0);
    assert_eq!(test.driver.wire.connects, [0, 0]);
}

#[test]
fn a_server_that_breaks_the_protocol_is_told_why() {
    let mut test = Test::connected(2, 1, 100);
    test.sends(0);
    test.frames(0);
    test.gives(0, b"\0\0\x01\x06\0\0\0\0\0x");
    assert_eq!(
        test.events(),
        [
            "0 lost Protocol FRAME_SIZE_ERROR: PING that is not 8 bytes",
            "Closed(0)",
            "Closed(1)"
        ]
    );
    assert_eq!(test.frames(0), [(kind::GOAWAY, 0, 8)]);
    let figures = test.figures();
    assert_eq!(figures.connection_errors[&6], 1);
    assert_eq!(figures.connections.closed_by_client, 1);
}

#[test]
fn an_attempt_that_fails_is_told_to_all_who_wait_for_it() {
    let mut test = Test::new(2, 1);
    test.driver.connect(0, 0);
    test.driver.connect(1, 0);
    test.driver
        .wire
        .events
        .push_back(NetEvent::ConnectFailed(0, 111));
    assert_eq!(
        test.events(),
        ["ConnectFailed(0, 111)", "ConnectFailed(1, 111)"]
    );
    test.driver.connect(1, 0);
    assert_eq!(test.driver.wire.connects, [0, 0]);
}

#[test]
fn when_the_first_gives_up_another_is_told_of_the_connection() {
    let mut test = Test::new(2, 1);
    test.driver.connect(0, 0);
    test.driver.connect(1, 0);
    test.driver.close(0);
    test.driver.wire.events.push_back(NetEvent::Connected(0));
    assert_eq!(test.events(), ["Connected(1)"]);
    test.driver.close(1);
    assert_eq!(test.driver.wire.closed, [0]);
}

#[test]
fn a_connection_that_is_lost_amid_a_response_shows_nothing_of_it() {
    let mut test = Test::connected(1, 1, 100);
    test.sends(0);
    test.frames(0);
    let mut bytes = Vec::new();
    frame::write_block(1, &[0x88], false, 100, &mut bytes);
    test.gives(0, &bytes);
    test.driver
        .wire
        .events
        .push_back(NetEvent::Broken(0, crate::net::Direction::Read, 104));
    let events = test.events();
    assert_eq!(events.last().unwrap(), "Broken(0, Read, 104)");
    test.driver.close(0);
}
