//! Where the mails of an mbox begin, and the line in front of each.
//!
//! Hides what tells that line from a line of text.

use bstr::ByteSlice;

/// The mails of an mbox, each with its `From ` line if it has one.
pub(super) fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut mails = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in bytes.lines_with_terminator() {
        if is_from_line(line) && at > start {
            mails.push(&bytes[start..at]);
            start = at;
        }
        at += line.len();
    }
    mails.push(&bytes[start..]);
    mails
}

/// Git's `is_from_line`: `From `, and a time with a year behind it.
fn is_from_line(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ").filter(|_| line.len() >= 20) else {
        return false;
    };
    let Some(colon) = rest[..rest.len() - 1]
        .rfind_byte(b':')
        .filter(|&at| at >= 4)
    else {
        return false;
    };
    let digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
    let year = rest.get(colon + 3..).unwrap_or_default().trim_start();
    let digits = year.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let year = year[..digits]
        .to_str()
        .ok()
        .and_then(|year| year.parse::<u32>().ok());
    [colon - 4, colon - 2, colon - 1, colon + 1, colon + 2]
        .into_iter()
        .all(digit)
        && year.is_some_and(|year| year > 90)
}

/// The commit's id in the `From ` line in front of a mail.
pub(super) fn commit_id(mail: &[u8]) -> Option<String> {
    let word = mail.strip_prefix(b"From ")?.fields().next()?;
    let is_id = word.len() == 40 && word.iter().all(u8::is_ascii_hexdigit);
    let id = is_id.then(|| word.to_str_lossy().into_owned());
    id.filter(|id| id.bytes().any(|byte| byte != b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_from_line_divides_no_mail_but_a_real_one_does() {
        assert!(is_from_line(
            b"From a@example.org Thu Jan  1 00:00:00 2024\n"
        ));
        assert!(!is_from_line(
            b">From a@example.org Thu Jan  1 00:00:00 2024\n"
        ));
        assert!(!is_from_line(b"From the beginning of time: never\n"));
    }
}
