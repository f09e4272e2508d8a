//! A model provider that follows a script: OpenAI's Responses and Chat Completions APIs as server-sent events, on the
//! loopback only.
//!
//! Real harnesses talk to it over a real socket, so that end-to-end tests need neither a login nor the internet. A
//! client whose base URL is `http://127.0.0.1:PORT/s/NAME/v1` is played the script `NAME`, one [`Step`] per request;
//! progress is kept per script and session. What was asked is kept in a [`Log`](log). It doesn't check that a request
//! makes sense, and doesn't speak WebSocket (an upgrade is refused, which clients accept). A request that offers no
//! tools is one for a title, which harnesses ask for beside the conversation: it's answered out of turn.
//!
//! Read next: [`script`] (what can be said), [`reply`] (how it looks on the wire), [`server`] (sockets and limits).

mod chat;
pub mod log;
mod offer;
mod reply;
pub mod script;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

pub use log::{Entry, Kind};
pub use script::{Answer, Item, Script, ScriptError, Scripts, Step};

/// A running provider; dropping it ends it, with every connection it has.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<server::Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Provider {
    /// Starts on a free port of 127.0.0.1, in a thread of its own.
    pub fn start(scripts: Scripts) -> io::Result<Self> {
        Self::start_on(scripts, 0)
    }

    /// Starts on this port of 127.0.0.1; 0 takes a free one.
    pub fn start_on(scripts: Scripts, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(server::Shared::new(scripts));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("scripted-provider".to_owned()).spawn(move || {
            runtime.block_on(server::serve(listener, of_thread, stopped));
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What a client is configured with to be played the script `name`.
    #[must_use]
    pub fn base_url(&self, name: &str) -> String {
        format!("http://{}/s/{name}/v1", self.address)
    }

    /// Everything that was asked so far, oldest first.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.shared.log.entries()
    }

    /// The requests for a model's answer so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Entry> {
        self.log().into_iter().filter(|entry| entry.kind == Kind::Request).collect()
    }

    /// Waits until `is_reached` says so of the log; the log at that moment, or `None` once `patience` is used up.
    pub fn wait_for(&self, patience: Duration, is_reached: impl FnMut(&[Entry]) -> bool) -> Option<Vec<Entry>> {
        self.shared.log.wait_for(patience, is_reached)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // The thread is gone already if the runtime ended; both are fine.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
