//! Work that several threads share.

/// More threads than this gain nothing: the disk or the kernel's locks decide.
const MOST: usize = 4;

/// Runs `work` on as many threads as there are cores, this one among them, and returns what each made of it. Where no
/// thread is to be had, the others do its part: `work` takes its pieces from something shared.
pub(super) fn on_all<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
    std::thread::scope(|scope| {
        let start = || std::thread::Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).filter_map(|_| start()).collect();
        let mine = work();
        let others = others.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        [mine].into_iter().chain(others).collect()
    })
}
