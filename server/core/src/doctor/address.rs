//! The address by which the doctor tries who reaches the network.

use std::fmt;

/// A host and a port, as a URL names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: String,
    host: String,
    port: u16,
}

/// Why a text is no such address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address such as https://example.com or http://127.0.0.1:8080")]
pub struct AddressError(String);

impl Address {
    /// Reads a URL of `http` or `https` with a plain host.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let refused = || AddressError(crate::display::headline(url, 80));
        let schemes = [("https://", 443), ("http://", 80)];
        let (rest, usual) =
            schemes.iter().find_map(|(scheme, port)| Some((url.strip_prefix(scheme)?, *port))).ok_or_else(refused)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| refused())?),
            None => (authority, usual),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
        let is_plain = (1..=253).contains(&host.len()) && host.bytes().all(plain) && !host.starts_with('-');
        if !is_plain || port == 0 {
            return Err(refused());
        }
        Ok(Self { url: url.to_owned(), host: host.to_owned(), port })
    }

    /// The host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Default for Address {
    /// What the page of that name is for.
    fn default() -> Self {
        Self { url: "https://example.com".to_owned(), host: "example.com".to_owned(), port: 443 }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_and_nothing_a_shell_could_read() {
        for (url, host, port) in [
            ("https://example.com", "example.com", 443),
            ("http://127.0.0.1:8080/x?y", "127.0.0.1", 8080),
            ("http://my-proxy.local/", "my-proxy.local", 80),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((address.host(), address.port(), address.to_string().as_str()), (host, port, url));
        }
        assert_eq!(Address::parse("https://example.com").unwrap(), Address::default());
        for url in [
            "",
            "example.com",
            "ftp://x",
            "https://",
            "http://a:b",
            "http://a:0",
            "http://$(x)",
            "http://u@h",
            "http://-h",
        ] {
            assert!(Address::parse(url).is_err(), "{url}");
        }
    }
}
