//! Header lines that are folded (RFC 9112, section 5.2).

/// Joins each folded line to the one before with a single blank.
pub fn unfold(head: &mut Vec<u8>) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    if !head.windows(2).any(|at| at[0] == b'\n' && is_blank(&at[1])) {
        return;
    }
    let mut lines = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let from = line.iter().take_while(|byte| is_blank(byte)).count();
        if from > 0 {
            lines.truncate(lines.trim_ascii_end().len());
            lines.push(b' ');
        }
        lines.extend_from_slice(&line[from..]);
    }
    *head = lines;
}
