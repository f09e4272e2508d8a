//! `echo-loop`: sends every frame back as it came, and does nothing else: the least that an answer over these pipes
//! costs.

use std::io::{self, BufRead, Read, Write};

fn main() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut header = String::new();
    loop {
        let mut length = 0;
        loop {
            header.clear();
            if input.read_line(&mut header)? == 0 {
                return Ok(());
            }
            match header.trim_end().split_once(": ") {
                Some((_, value)) => length = value.parse().map_err(io::Error::other)?,
                None => break,
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        output.write_all(format!("Content-Length: {length}\r\n\r\n").as_bytes())?;
        output.write_all(&body)?;
        output.flush()?;
    }
}
