//! Callers on threads and runtimes of their own, as actors' shards are.

use futures_util::future::join_all;
use tokio::sync::oneshot;

/// Runs each future on a thread of its own, under a runtime of its own, side by side; answers what they answer.
///
/// The provider may have its tasks on this runtime, which goes on meanwhile.
pub(crate) async fn side_by_side<T, F>(makes: impl IntoIterator<Item = impl FnOnce() -> F + Send + 'static>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let answers = makes.into_iter().map(|make| {
        let (tell, told) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let answer = runtime.expect("a runtime starts").block_on(make());
            // The listener is gone only if another claim has failed meanwhile.
            drop(tell.send(answer));
        });
        async move {
            let Ok(answer) = told.await else { std::panic::resume_unwind(thread.join().expect_err("it has panicked")) };
            thread.join().expect("it has answered");
            answer
        }
    });
    join_all(answers.collect::<Vec<_>>()).await
}
